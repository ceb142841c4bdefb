// Package sandbox starts a real Kubernetes control plane and an OCI registry for
// a test, a benchmark or the demonstration, and takes it away again.
//
//	func TestRollout(t *testing.T) {
//		s := sandbox.Start(t)
//		client := kubernetes.NewForConfigOrDie(s.Config())
//		...
//	}
//
// A sandbox is a process of the binary built from the repository's folder sandbox
// ([binary]): etcd, API server with RBAC and an audit log, controller manager,
// scheduler, and simulated nodes on which pods run at once (those of
// "sandbox up", which is for people, take 2 seconds). It is ready about
// 4 seconds after the start, holds about 800 MB of memory, and listens on
// loopback ports of its own, so several run side by side. Nothing outlives the
// process that started it, even when that one is killed: the sandbox watches a
// pipe to it.
//
// # Environment
//
//   - LOCKSTEP_SANDBOX: path of a built binary. When unset, the one for the
//     repository's sources is taken from the cache, and built first where it is
//     missing (minutes: "./task sandbox:build" does it ahead of time, with progress).
//   - LOCKSTEP_SANDBOX_KEEP=1: data and logs stay after the end, below the cache
//     folder.
//
// # Counting requests
//
// [Sandbox.Audit] reads the API server's audit log, which has every request with
// its user, verb, object, result and times in microseconds. Give the program under
// test a user of its own ([Sandbox.UserKubeconfig]), [Audit.Mark] the position,
// let it work, and read the entries with [Audit.Since].
package sandbox
