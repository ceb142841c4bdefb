// Package targets connects to other clusters, by kubeconfigs in Secrets.
//
//	Use ─► Secret, watched ─► Parse: refusals ─► probe: who it is ─► session
//	                                                ▲                   │
//	        a pause that grows, or a changed Secret ┴── suspected ◄─────┘
//
// All users of the same key of the same Secret share a connection, which ends some time after the
// last of them. The caller decides what a session consists of. Each session has one kubeconfig and
// one cluster; if either changes, a new session starts.
//
// A connected target is not polled. If a request gets no answer, or its credentials are rejected,
// the target is probed. While the target is away there is no session, and requests of the last
// session fail at once. No function here blocks its caller.
//
// The kubeconfig belongs to a user and is not trusted. It can name a server and credentials, but
// nothing that runs a program, reads files or impersonates. Errors quote neither the kubeconfig nor
// the server's answers.
package targets
