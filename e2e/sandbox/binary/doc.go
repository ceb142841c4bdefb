// Package binary finds the sandbox's binary for the sources at hand, and builds
// it where it is missing.
//
// The binary holds the Kubernetes control plane, so it is kept by content: its
// folder is called after a hash of the sandbox module's sources, go.mod, go.sum,
// the Go version and the platform. Two checkouts with the same sources share it,
// and a change of any of them makes a new one.
//
//	${LOCKSTEP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockstep}/sandbox-bin/HASH/sandbox
//
// Beside the binary lie symlinks with the names of its components (etcd,
// kube-apiserver, kubectl, …), so the folder also serves as envtest's
// KUBEBUILDER_ASSETS.
//
// A build goes on in a folder of its own that is renamed at the end, under a lock
// that other processes wait for. The package uses the standard library and the go
// command alone, so that it starts at once. It needs a Unix system.
package binary
