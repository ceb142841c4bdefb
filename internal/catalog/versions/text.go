package versions

import (
	"strconv"
	"unicode/utf8"
)

// textRunes is how many runes of a foreign text a message shows.
const textRunes = 100

func shortened(text string) string {
	if len(text) <= textRunes || utf8.RuneCountInString(text) <= textRunes {
		return text
	}
	return string([]rune(text)[:textRunes-1]) + "…"
}

func quoted(text string) string { return strconv.Quote(shortened(text)) }
