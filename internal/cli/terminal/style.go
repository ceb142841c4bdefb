package terminal

import (
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Styles colour text by its meaning, with the 16 colours of the terminal's own theme.
type Styles struct {
	Good, Busy, Bad, Faint, Strong func(string) string
}

// Plain returns styles without colour.
func Plain() Styles {
	same := func(text string) string { return text }
	return Styles{Good: same, Busy: same, Bad: same, Faint: same, Strong: same}
}

// Colored returns styles with colour.
func Colored() Styles {
	style := func(code string) func(string) string {
		return func(text string) string {
			if text == "" {
				return ""
			}
			return "\x1b[" + code + "m" + text + "\x1b[m"
		}
	}

	return Styles{Good: style("32"), Busy: style("36"), Bad: style("31"), Faint: style("2"), Strong: style("1")}
}

// StylesFor returns the styles for output to w.
func StylesFor(w io.Writer) Styles {
	if IsTerminal(w) && os.Getenv("NO_COLOR") == "" {
		return Colored()
	}
	return Plain()
}

// IsTerminal reports whether w is a terminal that shows colours.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// styled matches the escapes of Styles.
var styled = regexp.MustCompile(`\x1b\[[0-9]*m`)

// width is the number of visible characters.
func width(text string) int { return utf8.RuneCountInString(styled.ReplaceAllString(text, "")) }

// Pad fills text with spaces up to a width, which excludes styles.
func Pad(text string, to int) string { return text + strings.Repeat(" ", max(0, to-width(text))) }

// Table arranges rows in columns that are as wide as their widest cell, two spaces apart. The width
// excludes styles.
func Table(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}

	lines := make([]string, len(rows))
	for i, row := range rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			cells[j] = Pad(cell, widths[j])
		}
		lines[i] = strings.TrimRight(strings.Join(cells, "  "), " ")
	}

	return lines
}

// Writer collects lines of text.
type Writer struct {
	strings.Builder
	Styles Styles
}

// Line adds a line, without the spaces at its end.
func (w *Writer) Line(text string) { w.WriteString(strings.TrimRight(text, " ") + "\n") }

// Field adds a line with a name, padded to a width, and a value, unless the value is empty.
func (w *Writer) Field(width int, name, value string) {
	if value != "" {
		w.Line("  " + w.Styles.Faint(Pad(name, width)) + "  " + value)
	}
}

// Rows adds a table whose lines start with an indentation.
func (w *Writer) Rows(indent string, rows [][]string) {
	for _, line := range Table(rows) {
		w.Line(indent + line)
	}
}
