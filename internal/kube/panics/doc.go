// Package panics turns panics into errors: the content of a package, or a response, must
// not end the process, which would meet it again after a restart. A recover does not cover
// the goroutines that a function starts, so [Guard], [Go], [After] and [Group] start them,
// and a test finds any others.
//
// A panic can quote the content that caused it, so errors and logs leave its text out (invariant
// 8). The Go runtime's own texts stay, because they only name types and numbers. The stack has no
// text of values.
package panics
