// Package progress tells people how a package stands: pure functions from what
// the API server shows to text.
//
//	Snapshot ─► Of ─► State ─┬─► Frame    a picture for a terminal
//	                         ├─► Lines    what changed since another State
//	                         ├─► Screen   the one-screen status
//	                         └─► Install.Judge, Delete.Judge   go on, done, or failed and why
//
// A State speaks of the spec at hand only: what a status says of an earlier
// generation is not in it. Where the status does not tell how an object stands
// (it names at most MaxBlockingObjects that block), the State does not guess.
//
// Every text from the cluster is escaped here, once, when a State is made.
package progress
