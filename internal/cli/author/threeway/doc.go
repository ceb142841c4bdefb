// Package threeway merges two changed versions of a text: YAML field by field, other text
// line by line.
//
//	base ─┬─► ours   ─┐
//	      └─► theirs ─┴─► merged, or the conflicts
//
// List items are matched by key, such as containers by name; lists without keys are merged
// like lines. Comments and order of ours are kept. The caller limits the size of texts;
// package document limits depth and size of YAML.
package threeway
