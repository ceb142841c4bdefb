package objectdiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"lockstep.run/lockstep/internal/cli/terminal"
)

const (
	shownBefore = 20 // runes of two long values before their first difference
	shownLines  = 20 // lines of the difference between two texts
)

// Text returns the two values of a change on one line each, cut to a width around their first
// difference.
func (c Change) Text(width int) (before, after string) {
	before, after = encode(c.Before), encode(c.After)
	return around(before, after, width), around(after, before, width)
}

// Lines returns the difference between two texts with several lines, as lines of a diff; nil for
// other values.
func (c Change) Lines() []string {
	was, isText := c.Before.(string)
	is, both := c.After.(string)
	if !isText || !both || !severalLines(was) && !severalLines(is) {
		return nil
	}
	return lineDiff(was, is)
}

// severalLines reports whether a text has a line break before its end.
func severalLines(text string) bool { return strings.Contains(strings.TrimSuffix(text, "\n"), "\n") }

// encode returns a value as JSON on one line.
func encode(v any) string {
	if v == Hidden {
		return Hidden
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}

	return terminal.Line(strings.TrimSpace(buf.String()))
}

// around cuts a text to a width so that its first difference from another text stays visible.
func around(text, other string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes, others, same := []rune(text), []rune(other), 0
	for same < len(runes) && same < len(others) && runes[same] == others[same] {
		same++
	}

	if from := min(same-shownBefore, len(runes)-width+1); from > 0 {
		return terminal.Truncate("…"+string(runes[from:]), width)
	}
	return terminal.Truncate(text, width)
}

// lineDiff returns the lines that differ, each with a sign, and one line around them. Lines beyond
// the limit are counted.
func lineDiff(before, after string) (lines []string) {
	diff, err := udiff.ToUnified("", "", before, udiff.Lines(before, after), 1)
	if err != nil {
		return nil // cannot happen, because the edits belong to these texts
	}
	more := 0
	for i, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		switch {
		case i < 2, i == 2 && strings.HasPrefix(line, "@@"): // the names of the files, and the first place
		case len(lines) == shownLines:
			more++
		case strings.HasPrefix(line, "@@"):
			lines = append(lines, "…")
		case strings.HasPrefix(line, `\ `): // a missing newline counts only if the other text has one
			if bothEnds := strings.HasSuffix(before, "\n") == strings.HasSuffix(after, "\n"); !bothEnds {
				lines = append(lines, "  (no newline at the end)")
			}
		default:
			lines = append(lines, line[:1]+" "+terminal.Line(line[1:]))
		}
	}

	if more > 0 {
		lines = append(lines, fmt.Sprintf("… %d more lines", more))
	}
	return lines
}
