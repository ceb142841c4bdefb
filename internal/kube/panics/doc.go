// Package panics makes errors of panics: what a package, a registry or an API server
// sends must not end the process, for it would meet the same again after the restart.
//
// Only who calls recover knows what to give up, so each does that itself. No goroutine
// is covered by the recover of the one that started it.
//
// A panic may quote what was worked on. Its words are left out of errors and logs,
// except for those of the Go runtime, which names types and numbers alone
// (invariant 8); the stack shows no text of values.
package panics
