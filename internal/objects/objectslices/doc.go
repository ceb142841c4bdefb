// Package objectslices decides which objects of a revision are kept in ObjectSlices, and
// distributes them among slices. It is pure.
//
// A revision of up to limits.SliceThreshold bytes of JSON holds its objects itself. In a larger
// revision, every phase that exceeds its share of the threshold is cut into chunks of one slice
// each. The objects that stay in the revision thus never exceed the threshold, and a phase does not
// move because another one grew.
//
// The names of the objects decide where a chunk ends, so that a change rewrites its own chunk and
// no other. Each boundary between two objects has a rank, which is the hash of the name before it.
// A run of objects that does not fit into one slice is cut at its boundary of the lowest rank. This
// is repeated with both parts until every part fits. Because ranks depend neither on sizes nor on
// positions:
//
//   - an object that grows can only split its own chunk further;
//   - an object that shrinks or is removed can only join its own chunk with the adjacent ones;
//   - a new object adds a boundary, and changes only the chunks next to it.
//
// Invariants: chunks joined in their order are the input; a chunk of more than one object is at
// most limits.SliceBytes; a change of one object makes new, adjacent chunks of at most three times
// that size; equal input gives equal names.
//
// A slice is named after its content. An unchanged slice is found instead of written again, and
// revisions share it.
//
// A revision with sensitive values keeps its Secrets, and all other objects with such a value, in
// Secrets. They are moved regardless of their size, cut in the same way, and named by HMAC. No part
// of them appears in a template, a name or a hash that others can read (invariant 8).
package objectslices
