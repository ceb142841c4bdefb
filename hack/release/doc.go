// Command release makes the files of a release in a folder, and publishes nothing:
//
//	go run ./hack/release --out dist/v0.2.0 v0.2.0
//
// These are the manager's image as an OCI layout in a tar, the plugin for six platforms, the manifests as one YAML and as a Helm
// chart, manifests of krew, software bills of materials, the provenance, and checksums of all of these. With --layout it makes the
// image alone, as a folder that any tool pushes that reads OCI layouts:
//
//	go run ./hack/release --layout dist/image
//	crane push dist/image registry.example.com/lockstep-manager:v0.1.0
//
// The same commit, Go version and flags give the same bytes: paths are trimmed, no version control data is stamped but the commit,
// all times are the commit's, and lists are sorted.
//
// The image holds no files with CA certificates, which differ with the machine that builds: the manager trusts Mozilla's, which are
// in its binary. A bundle that is mounted at /etc/ssl/certs replaces them.
package main
