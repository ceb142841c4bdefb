// Package lockfile computes the lock of a package: the digests that its images
// stand for, and the package images that meet its dependencies.
//
//	manifest ─► images, dependencies ─► registry, repositories ─► manifest.lock.yaml
//
// The root of a package and each of its components have a lock of their own. A
// lock is written only where its content changes, under the name that it has
// (manifest.lock.yml stays that), and without a time: equal input gives equal
// bytes, and so the same digest of the package.
//
// A dependency gets the highest version in its range of all repositories that the
// manifest names, among the images that can be installed wherever the package
// itself can: their constraints on platforms have to cover those of the package.
// Dependencies of dependencies are not followed.
package lockfile
