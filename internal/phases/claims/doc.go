// Package claims decides which package owns an object if two of them bring it (invariant 10).
//
// A claim covers all objects of a revision. It is taken as a whole or not at all, so exactly one of
// two packages gets all of its objects. The leader holds the claims in memory. The condition
// Claimed of the revision makes them durable: after a restart, the holder first restores the claims
// of revisions that have the condition, and then admits new ones.
//
// A cluster-scoped owner precedes namespaced ones. With collisionProtection None it takes objects
// even from namespaced owners, which lose their claim.
//
// The table is pure: the caller passes the objects of each owner.
package claims
