// Package objectdiff compares Kubernetes objects field by field, and sets of
// objects one by one, for people and programs. It is pure.
//
//	[Fields]   two states of one object → what differs, by path
//	[Sets]     two sets of objects      → what is added, removed, changed, moved
//
// Elements of a list are matched by what names them where all of them have it
// (name, key, type and a few more), else by their position, so that a container
// put first does not make all others differ. Values of Secrets, and what names
// them in a field of a Secret, are never in a result: only that they differ.
//
// Results are sorted by path, so equal input gives equal output.
package objectdiff
