// Package objectslices decides which objects of a revision are kept in ObjectSlices,
// and in which. It is pure.
//
// A revision of up to limits.SliceThreshold bytes of JSON holds its objects
// itself. Beyond, a phase that is larger than its share of the threshold is cut
// into chunks, one slice each; so what stays in the revision is never more than
// the threshold, and a phase does not move because another one grew.
//
// Where a chunk ends is decided by the names of the objects, so that a change
// rewrites the chunk that it is in and no other: each boundary between two
// objects has a rank, the hash of the name before it. A run of objects that does
// not fit into one slice is cut at its boundary of the lowest rank, and so are
// both parts, until every part fits. Ranks do not depend on sizes or on
// positions:
//
//   - an object that grows can only split its own chunk further;
//   - one that shrinks or is removed can only join its own chunk with those beside it;
//   - a new one adds a boundary, and changes what lies beside that.
//
// Invariants: chunks joined in their order are the input; a chunk of more than
// one object is at most limits.SliceBytes; a change of one object makes new
// chunks of at most three times that, side by side; equal input gives equal
// names.
//
// A slice is named after its content, so an unchanged one is found and not
// written again, and revisions share it.
//
// A revision with sensitive values keeps its Secrets, and what else holds such a
// value, in Secrets: whatever its size, cut in the same way, named by HMAC. Nothing
// of them is in a template, a name or a hash that others may read (invariant 8).
package objectslices
