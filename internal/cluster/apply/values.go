package apply

import (
	"encoding/json"
	"strings"
)

// shortValue is the maximum length of a value that stays in a message.
const shortValue = 80

// WithoutDumps removes the values that the API server quotes before it names the problem of a
// field, if they are long. The whole pod template of a Job precedes "field is immutable", so a
// truncated message would not contain the problem.
func WithoutDumps(text string) string {
	const before = "Invalid value: "
	var out strings.Builder
	for {
		head, rest, found := strings.Cut(text, before)
		out.WriteString(head)
		if !found {
			return out.String()
		}
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value json.RawMessage
		after := ""
		if decoder.Decode(&value) == nil {
			after = rest[decoder.InputOffset():]
		}
		if reason, known := strings.CutPrefix(after, ": "); known && len(value) > shortValue {
			rest = reason
		} else {
			out.WriteString(before)
		}
		text = rest
	}
}
