// Package targets connects to other clusters, by kubeconfigs in Secrets.
//
//	Use ─► Secret, watched ─► Parse: refusals ─► probe: who it is ─► session
//	                                                ▲                   │
//	        a pause that grows, or a changed Secret ┴── suspected ◄─────┘
//
// All users of one key of one Secret share a connection, which ends some time after the
// last of them. What a session consists of is the caller's; each has one kubeconfig and
// one cluster: another of either is a new session.
//
// A connected target is not polled. A request without an answer, or with one that its
// credentials are not accepted, starts a probe of the target; while it is away there is
// no session, and requests of the last one fail at once. Nothing here blocks a caller.
//
// The kubeconfig is a user's, and not trusted: it may name a server and credentials, and
// nothing that runs, reads or impersonates. Errors quote neither it nor what the server
// answers.
package targets
