package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// EnableSequences has a console of Windows interpret ANSI sequences, which older ones do only on request.
func EnableSequences(f *os.File) {
	var mode uint32
	console := windows.Handle(f.Fd())
	if windows.GetConsoleMode(console, &mode) == nil {
		_ = windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) // without it the text is still readable
	}
}
