// Package objectdiff compares Kubernetes objects field by field, and sets of objects. It is pure,
// and results are sorted by path.
//
//	[Fields]   two states of one object → the differences, by path
//	[Sets]     two sets of objects      → added, removed, changed and moved objects
//	[Managers] one object                → the managers of the field at a path
//
// Elements of lists are matched by their identifying fields (package listkeys), or else by
// position. Results never have values of Secrets.
package objectdiff
