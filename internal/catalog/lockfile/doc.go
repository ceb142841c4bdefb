// Package lockfile computes the lock of a package and of each component: the digests of its images, and the package
// images that meet its dependencies.
//
//	manifest ─► images, dependencies ─► registry, repositories ─► manifest.lock.yaml
//
// A lock is written where its content changes, without a time: equal input gives equal bytes. A dependency gets the
// highest version in its range, among the images whose constraints on platforms cover the package's. Dependencies
// of dependencies are not followed.
package lockfile
