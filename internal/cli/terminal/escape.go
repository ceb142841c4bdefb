package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text that is safe within one line: line breaks and tabs become spaces, and
// characters that are invisible or move the cursor become escapes.
func Line(text string) string { return escape(text, true) }

// Text is Line for text that can have several lines and tabs.
func Text(text string) string { return escape(text, false) }

// escape escapes characters. In one line, it also replaces line breaks and tabs.
func escape(text string, oneLine bool) string {
	if !needsEscape(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
			if oneLine {
				r = ' '
			}
			out.WriteRune(r)
		case r == utf8.RuneError && isBroken(text[i:]):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case safe(r):
			out.WriteRune(r)
		default:
			out.WriteString(escapeRune(r))
		}
	}

	return out.String()
}

// needsEscape reports whether a text has a character to escape. Most texts have none and are not
// copied.
func needsEscape(text string) bool {
	for i, r := range text {
		if !safe(r) || r == utf8.RuneError && isBroken(text[i:]) {
			return true
		}
	}
	return false
}

// isBroken reports whether text starts with a byte that is not UTF-8.
func isBroken(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return r == utf8.RuneError && size == 1
}

// safe reports whether a character is displayed as itself. Format characters, which reverse text or
// are invisible, are not safe.
func safe(r rune) bool { return unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) }

// escapeRune writes a character as Go and YAML do.
func escapeRune(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Count returns texts such as "1 object" and "2 objects".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
