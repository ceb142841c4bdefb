// Package threeway merges two changed versions of a text: YAML field by field, other
// text line by line. It is pure.
//
//	base ─┬─► ours   ─┐
//	      └─► theirs ─┴─► merged, or the conflicts
//
// A field that both sides changed differently is a [Conflict]. List items are matched
// by key, such as containers by name; lists without keys are merged like lines.
// Comments and order of ours are kept.
//
// The caller bounds the texts; package document limits depth and size of YAML.
package threeway
