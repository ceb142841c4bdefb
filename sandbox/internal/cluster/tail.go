package cluster

import (
	"os"
	"strings"
)

// tailBytes bounds how much of a log is read for its last lines.
const tailBytes = 16 << 10

// tail returns the last lines of a file, or an empty string if it cannot be read.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if len(content) > tailBytes {
		content = content[len(content)-tailBytes:]
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
