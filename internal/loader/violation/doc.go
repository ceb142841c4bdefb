// Package violation describes what is wrong with a package in terms that its
// author can act on: file, document, line, field, object, and what to do.
//
// Reasons are fixed texts. Those that Package Operator has are kept word for
// word, because tests and users match them. Text is deterministic: the same
// package always gives the same violations in the same order.
package violation
