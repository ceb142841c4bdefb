package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// valueText is a value of a field as JSON on one line, cut where it is wider than so
// many columns.
func valueText(v any, width int) string {
	if v == objectdiff.Hidden {
		return objectdiff.Hidden
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}
	return terminal.Truncate(terminal.Line(strings.TrimSpace(buf.String())), width)
}
