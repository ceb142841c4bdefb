package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
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

// WriteJSON writes a value as indented JSON with only characters that are safe on a terminal. A
// parser still reads the same value.
func WriteJSON(w io.Writer, value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, escapeEncoded(data, jsonRune))
	return err
}

// WriteYAML writes a value as YAML in the same way, with the keys of its JSON in alphabetical order,
// as kubectl does. A value with unsafe characters is written as JSON, which is YAML, too.
func WriteYAML(w io.Writer, value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	text, err := yaml.JSONToYAML([]byte(data))
	if err != nil || needsEscape(strings.ReplaceAll(string(text), "\n", "")) {
		text = []byte(escapeEncoded(data, escapeRune))
	}
	_, err = w.Write(text)
	return err
}

// encode returns a value as indented JSON.
func encode(value any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return buf.String(), nil
}

// escapeEncoded escapes the characters that an encoder left unchanged. In encoded text, the only
// control characters outside of strings are line breaks.
func escapeEncoded(text string, escape func(rune) string) string {
	var out strings.Builder
	for _, r := range text {
		if safe(r) || r == '\n' {
			out.WriteRune(r)
			continue
		}
		out.WriteString(escape(r))
	}
	return out.String()
}

// jsonRune writes a character as JSON does, as a surrogate pair if it needs one.
func jsonRune(r rune) string {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return escapeRune(r)
}
