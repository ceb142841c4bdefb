// Package sandbox starts a real Kubernetes control plane and an OCI registry for
// a test, a benchmark or the demonstration, and removes them afterwards.
//
//	func TestRollout(t *testing.T) {
//		s := sandbox.Start(t)
//		client := kubernetes.NewForConfigOrDie(s.Config())
//		...
//	}
//
// A sandbox is a process of the binary built from the repository's folder sandbox
// ([binary]): etcd, API server with RBAC and an audit log, controller manager,
// scheduler, and simulated nodes. Pods start at once (after 2 seconds with
// "sandbox up", which is for interactive use). A sandbox is ready after about
// 4 seconds, uses about 800 MB of memory, and listens on its own loopback ports,
// so several can run at the same time. It never outlives the process that
// started it, even if that process is killed, because it watches a pipe to it.
//
// # Environment
//
//   - LOCKSTEP_SANDBOX: path of a built binary. If unset, the cache provides the
//     binary for the repository's sources. A missing binary is built, which takes
//     minutes ("./task sandbox:build" builds it ahead of time, with progress).
//   - LOCKSTEP_SANDBOX_KEEP=1: keep data and logs below the cache folder.
//
// # Counting requests
//
// [Sandbox.Audit] reads the API server's audit log, which has every request with
// its user, verb, object, result and times in microseconds. Give the program under
// test a user of its own ([Sandbox.UserKubeconfig]), [Audit.Mark] the position,
// let it work, and read the entries with [Audit.Since].
package sandbox
