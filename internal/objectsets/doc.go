// Package objectsets reads ObjectSets: it turns them, with the objects of their slices and Secrets,
// into revisions of package engine, and restores the progress of these from their statuses.
//
//	sets, slices ──► Load ──► engine.Revision ◄── Restore ◄── status of the set
//
// A permanent fault of a set that can be found without a write blocks its revision (load.go,
// names.go, reserved.go). A phase with a class has one object, the ObjectSetPhase (delegate.go),
// whose agent reports on it (agents.go).
package objectsets
