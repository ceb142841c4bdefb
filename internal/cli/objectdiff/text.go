package objectdiff

import (
	"bytes"
	"encoding/json"
	"strings"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// ValueText is JSON on one line.
func ValueText(v any, width int) string {
	if v == Hidden {
		return Hidden
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}
	return terminal.Truncate(terminal.Line(strings.TrimSpace(buf.String())), width)
}
