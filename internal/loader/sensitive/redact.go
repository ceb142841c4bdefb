package sensitive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
)

// Mark replaces redacted text in a message.
const Mark = "[redacted]"

// messageBytes is the maximum length of a message. The rest is cut off.
const messageBytes = 16 << 10

// Redact replaces every piece of a value and of its encoded forms in a text.
func (v *Values) Redact(text string) string {
	if v.Empty() || text == "" {
		return text
	}

	cut := false
	if len(text) > messageBytes {
		text, cut = text[:messageBytes], true
	}

	hidden := make([]bool, len(text))
	hide := func(start, n int) {
		for i := start; i < start+n; i++ {
			hidden[i] = true
		}
	}

	v.each(text, hide)
	if cut {
		// The last bytes might be the start of a value.
		hide(len(text)-limits.SensitiveLength, limits.SensitiveLength)
	}

	return show(text, hidden)
}

// each calls found for every piece of a value in a text, and every encoded form.
func (v *Values) each(text string, found func(start, n int)) {
	pieces := v.pieces()
	for i := 0; i+limits.SensitiveLength <= len(text); i++ {
		piece := text[i : i+limits.SensitiveLength]
		if len(pieces.Lookup([]byte(piece), 1)) > 0 {
			found(i, len(piece))
		}
		for _, form := range v.forms[window(piece)] {
			if strings.HasPrefix(text[i:], form) {
				found(i, len(form))
			}
		}
	}
}

// show writes a text with marks instead of hidden parts.
func show(text string, hidden []bool) string {
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString(Mark)
		}
	}
	return b.String()
}

// shortest is the minimum length of values that are redacted as words.
const shortest = 4

// RedactWords is Redact, but also replaces short values that are words.
func (v *Values) RedactWords(text string) string {
	text = v.Redact(text)
	if v.Empty() {
		return text
	}
	for _, value := range v.short {
		text = replaceWord(text, value)
	}
	return text
}

// replaceWord replaces a value between characters that are neither letters nor digits.
func replaceWord(text, word string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, word)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		b.WriteString(text[:i])
		if isWord(before) || isWord(after) {
			b.WriteString(word)
		} else {
			b.WriteString(Mark)
		}
		text = text[end:]
	}
}

// isWord reports whether a character continues a word.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
