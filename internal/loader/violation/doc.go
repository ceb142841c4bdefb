// Package violation describes problems of a package for its author: file,
// document, line, field, object, and what to do.
//
// Reasons are fixed; those of Package Operator are kept word for word, because
// tests and users match them. The same package always has the same violations in
// the same order.
package violation
