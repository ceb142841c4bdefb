package versions

import (
	"strconv"
	"unicode/utf8"
)

// textRunes is the maximum number of runes of a foreign text in a message.
const textRunes = 100

// shortened cuts foreign text at a whole character, and marks the cut.
func shortened(text string) string {
	if len(text) <= textRunes || utf8.RuneCountInString(text) <= textRunes {
		return text
	}
	return string([]rune(text)[:textRunes-1]) + "…"
}

// quoted also escapes characters that would change a terminal or a log.
func quoted(text string) string { return strconv.Quote(shortened(text)) }
