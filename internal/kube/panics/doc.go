// Package panics makes errors of panics: the content of a package, or a response, must
// not end the process, which would meet it again after a restart. No goroutine is
// covered by the recover of the one that started it: [Guard], [Go], [After] and [Group] start those
// of what others wrote, and a test looks for others.
//
// A panic may quote the content that was worked on, so its text is left out of errors and
// logs (invariant 8), except for that of the Go runtime, which names types and numbers;
// the stack has no text of values.
package panics
