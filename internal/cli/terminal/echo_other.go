//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package terminal

import "io"

// Quiet does nothing here.
func Quiet(io.Writer) (restore func()) { return func() {} }
