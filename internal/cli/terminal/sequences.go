//go:build !windows

package terminal

import "os"

// EnableSequences has nothing to do: terminals interpret ANSI sequences.
func EnableSequences(*os.File) {}
