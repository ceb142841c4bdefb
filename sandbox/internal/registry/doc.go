// Package registry is an OCI registry for images of tests. It has no TLS and authentication, and
// keeps blobs and manifests in a folder, so that they survive a restart. Manifests are limited to 4
// MiB, blobs by the disk.
package registry
