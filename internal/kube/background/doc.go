// Package background runs long work, such as loading a package or fetching a repository, outside
// the reconciles of its owners. Each owner has one attempt at a time.
//
//	Start ─► Run: the queue of a host ─► work ─► Update ─► the owner is reconciled, and decides
//
// An attempt is never changed: a changed copy replaces it. So a reconcile that reads it without a
// lock sees one state. An attempt that was replaced ends without effect.
package background
