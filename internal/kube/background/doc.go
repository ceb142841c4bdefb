// Package background runs work that takes long, such as loading a package or fetching a repository, beside the reconciles
// of its owners. Each owner has one attempt at a time.
//
//	Begin ─► Run: the queue of a host ─► work ─► Update ─► the owner is reconciled, and decides
//
// An attempt is read without a lock, so that a reconcile sees one state of it: in another state a copy takes its place.
// One that is not the owner's any more ends without effect.
package background
