package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

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
