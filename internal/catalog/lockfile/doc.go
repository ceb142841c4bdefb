// Package lockfile computes the locks of a package and its components: the digests of images, and
// the package images that meet the dependencies.
//
//	manifest ─► images, dependencies ─► registry, repositories ─► manifest.lock.yaml
//
// A lock is written only if its content changes. It has no time, so that equal input gives equal
// bytes. A dependency gets the highest version in its range that is not retracted, among the images
// whose platform constraints cover the package's. A range that is one version gets that one, even if
// it is retracted. Dependencies of dependencies are not followed.
package lockfile
