//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Quiet keeps what is typed from being shown on the terminal that w is, until
// restore is called: it would land in the middle of what is drawn. It stays
// there to be read, and interrupts work.
func Quiet(w io.Writer) (restore func()) {
	f, ok := w.(*os.File)
	if !ok {
		return func() {}
	}
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	if unix.IoctlSetTermios(fd, setTermios, &quiet) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }
}
