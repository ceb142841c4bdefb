// Package objectdiff compares Kubernetes objects field by field, and sets of objects. It is
// pure, and results are sorted by path.
//
//	[Fields]   two states of one object → what differs, by path
//	[Sets]     two sets of objects      → those added, removed, changed, moved
//	[Managers] one object                → who has the field of a path
//
// Elements of lists are matched by what identifies them (package listkeys), or else by
// position. Values of Secrets are never in a result.
package objectdiff
