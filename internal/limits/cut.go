package limits

import "strings"

// Cut returns a text of at most the given number of bytes unchanged. It cuts a longer one at a whole
// character, and adds an ellipsis, which does not count.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
