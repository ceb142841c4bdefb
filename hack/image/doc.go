// Command image builds the manager's image for two architectures without a
// container engine and writes it as an OCI image layout:
//
//	go run ./hack/image --out dist/image
//
// The layout's index has one entry, the image index with one image for each
// architecture, so that any tool that reads OCI layouts can push it:
//
//	crane push dist/image registry.example.com/lockstep-manager:v0.1.0
//	skopeo copy --all oci:dist/image docker://registry.example.com/lockstep-manager:v0.1.0
//
// Each image has two layers, one with the directories and the user, one with
// the program. The same sources, Go version and flags give the same digests:
// paths are trimmed, no version control data is stamped, and all times are the
// one of --created (SOURCE_DATE_EPOCH, or else the time of the commit).
//
// The image holds no files with CA certificates, which differ with the machine
// that builds: the manager trusts Mozilla's, which are in its binary. A bundle
// at /etc/ssl/certs, mounted or put there with --ca-bundle, replaces them.
package main
