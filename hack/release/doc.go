// Command release makes the files of a release in a folder. It does not publish them:
//
//	go run ./hack/release --out dist/v0.2.0 v0.2.0
//
// The files are the manager's image as an OCI layout in a tar, the plugin for six platforms, the
// manifests as one YAML and as a Helm chart, manifests of krew, software bills of materials, the
// provenance, and checksums of all of these. With --layout it makes only the image, as a folder
// that any tool with support for OCI layouts can push:
//
//	go run ./hack/release --layout dist/image
//	crane push dist/image registry.example.com/lockstep-manager:v0.1.0
//
// The same commit, Go version and flags give the same bytes: paths are trimmed, the commit is the
// only version control data that is stamped, all times are the commit's, and lists are sorted.
//
// The image has no files with CA certificates, which depend on the machine that builds it. The
// manager trusts Mozilla's, which are in its binary. A bundle that is mounted at /etc/ssl/certs
// replaces them.
package main
