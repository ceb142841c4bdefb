// Package claims decides which package an object belongs to while two of them
// bring it (invariant 10).
//
// A claim covers all objects of a revision and is taken all at once or not at
// all, so of two packages exactly one gets all of its objects. The leader holds
// the claims in memory. What makes them durable is the condition Claimed of the
// revision: after a restart the holder restores the claims of revisions that
// have it first, and then lets new ones ask.
//
// A cluster-scoped owner precedes namespaced ones: it takes objects with
// collisionProtection None also from namespaced ones, which lose their claim.
//
// The table is pure: the caller passes what each owner holds.
package claims
