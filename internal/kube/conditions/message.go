package conditions

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
)

// ellipsis ends a message that was cut.
const ellipsis = " … (cut)"

// Message returns text in a form that a condition can carry: valid UTF-8 of at most
// limits.MessageBytes, with every character escaped that could move a terminal's
// cursor or turn its text around. Line breaks and tabs stay.
func Message(text string) string {
	return Cut(escape(text), limits.MessageBytes)
}

// Cut truncates a text that is longer than most bytes, and marks it as such.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimSuffix(text[:end], ellipsis) + ellipsis
}

func escape(text string) string {
	if !strings.ContainsFunc(text, escaped) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			// Either a replacement character or an invalid byte of UTF-8.
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				fmt.Fprintf(&out, `\x%02x`, text[i])
				continue
			}
			out.WriteRune(r)
		case escaped(r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func escaped(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
