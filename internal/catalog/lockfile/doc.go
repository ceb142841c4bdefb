// Package lockfile computes the locks of a package and its components: the digests of images, and
// the package images that meet the dependencies.
//
//	manifest ─► images, dependencies ─► registry, repositories ─► manifest.lock.yaml
//
// A lock is written where its content changes, without a time: equal input gives equal bytes. A dependency gets the
// highest version in its range, among the images whose constraints on platforms cover the package's. Dependencies
// of dependencies are not followed.
package lockfile
