package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
)

// WriteJSON writes a value as indented JSON with only characters that are safe on a terminal. A
// parser still reads the same value.
func WriteJSON(w io.Writer, value any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := io.WriteString(w, escapeEncoded(buf.String(), jsonRune))

	return err
}

// WriteYAML writes a value as YAML in the same way, with the same keys as its JSON.
func WriteYAML(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}

	dec := json.NewDecoder(bytes.NewReader(data))
	// Numbers keep their digits, because they are not converted to floating point.
	dec.UseNumber()
	doc, err := yamlNode(dec)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}

	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}

	_, err = io.WriteString(w, escapeEncoded(buf.String(), escapeRune))
	return err
}

// yamlNode reads one value of JSON as YAML, and keeps the order of fields.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}

	switch t := token.(type) {
	case json.Delim:
		return yamlCollection(dec, t)
	case string:
		n := &yaml.Node{}
		// Encode, unlike SetString, quotes texts that YAML 1.1 treats as booleans.
		if err := n.Encode(t); err != nil {
			// Encode parses its own output, which fails if a block starts with a tab.
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: t, Style: yaml.DoubleQuotedStyle}, nil
		}
		if needsEscape(strings.ReplaceAll(t, "\n", "")) {
			n.Style = yaml.DoubleQuotedStyle
		}

		return n, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(t)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// yamlCollection reads the rest of a list or a mapping. An empty one is written on one line, as
// kubectl does.
func yamlCollection(dec *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}

	for dec.More() {
		child, err := yamlNode(dec) // keys and values alike
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}

	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := dec.Token()
	return n, err
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
