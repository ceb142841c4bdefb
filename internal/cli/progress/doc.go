// Package progress reports on packages: pure functions from the API server's responses to text.
//
//	Snapshot ─► Of ─► State ─┬─► Lines    changes since another State
//	                         ├─► Screen   the one-screen status
//	                         └─► Install.Assess, Delete.Assess   continue, done, or failed and why
//
// A State is about the current generation, and ignores conditions of an earlier one. Texts from the
// cluster are escaped when a State is created.
package progress
