// Package threeway merges what two sides made of the same text: of YAML field by
// field, of anything else line by line. It is pure.
//
//	base ─┬─► ours   ─┐
//	      └─► theirs ─┴─► merged, or the conflicts
//
// A field that one side changed is as that side has it; one that both changed
// alike is so; one that both changed otherwise is a [Conflict]. Items of lists are
// told apart by what names them, such as containers by name; other lists are merged
// as texts are by their lines. What ours has in comments and order stays.
//
// The texts are bounded by who reads them; YAML has passed package document, which
// limits depth and size.
package threeway
