// Package mutationcache bridges the time between a write of ours and its arrival in an
// informer's cache.
//
// A reconcile that runs in that time would decide on an old object: it would
// write again what it has just written, or create a second one. So each answer
// to a write is put into a Store, and whatever is read from a cache is exchanged
// for what the store knows to be newer.
//
// Objects of one kind are ordered by their resourceVersion, a number (KEP-5504).
// Where it is none, the cache is believed.
//
// Entries leave the store when the cache has caught up, which Newest, the Store's
// event handler and Shown notice, and after limits.FreshRemembered when others come:
// no watch is that far behind. So at rest there is no second copy of what the cache
// holds.
package mutationcache
