// Package handover decides whether single objects may become those of a package, or be released by
// theirs, from what the objects are and what a dry run of the engine makes of them.
//
//	adopt    annotation adoptable-by on the object ─► the engine adopts it, and drops the annotation
//	release  annotation deletion-policy: Keep, and a patch of the Package that deletes the object
//	         from what it renders ─► the engine releases it with the next revision
//
// It has no client: the caller reads the objects, makes the plan and writes.
package handover
