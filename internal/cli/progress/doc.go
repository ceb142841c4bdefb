// Package progress reports on packages: pure functions from what the API server returned
// to text.
//
//	Snapshot ─► Of ─► State ─┬─► Lines    what changed since another State
//	                         ├─► Screen   the one-screen status
//	                         └─► Install.Assess, Delete.Assess   continue, done, or failed and why
//
// A State is about the current generation: conditions of an earlier one are not in it.
// Texts from the cluster are escaped when a State is made.
package progress
