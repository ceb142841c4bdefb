// Package rollout holds the command rollout: the revisions of a package or deployment, their
// differences, the timeline of their phases, and the way back to one.
//
//	cluster.Rollout ─► revisions ─┬─► history, diff, timeline
//	                              ├─► status: the wait for the newest one
//	                              └─► undo, activate, reject: changes of the spec or of a revision
//
// An undo writes the recorded content of a revision into the spec. The engine rolls it out as a new
// revision.
package rollout
