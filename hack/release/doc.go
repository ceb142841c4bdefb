// Command release makes the files of a release in a folder, and publishes nothing:
//
//	go run ./hack/release --out dist/v0.2.0 v0.2.0
//
// These are the manager's image as an OCI layout in a tar, the plugin for six platforms, the manifests as one YAML and as a Helm
// chart, manifests of krew, a software bill of materials, the provenance, and checksums of all of these. Where a key or an identity
// is given, these and the image are signed.
//
// The same commit, Go version and flags give the same bytes: paths are trimmed, no
// version control data is stamped but the commit, all times are that of the commit, and
// lists are sorted. Only signatures differ.
package main
