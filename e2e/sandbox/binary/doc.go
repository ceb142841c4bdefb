// Package binary finds the sandbox's binary for the current sources, and builds it if it
// is missing.
//
// The binary contains the Kubernetes control plane, so it takes long to build and is cached
// by content: the name of its folder is a hash of the sandbox module's sources, go.mod,
// go.sum, the Go version and the platform. Checkouts with the same sources share a binary.
//
//	${LOCKSTEP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockstep}/sandbox-bin/HASH/sandbox
//
// The folder also contains symlinks with the names of the binary's components (etcd,
// kube-apiserver, kubectl, …), so it can be used as envtest's KUBEBUILDER_ASSETS.
//
// A build uses its own folder and renames it at the end. It holds a lock that other
// processes wait for. The package only uses the standard library and the go command, so that
// it starts quickly. It needs a Unix system.
package binary
