package terminal

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// Styles colour text by its meaning, with the 16 colours of the terminal's own theme.
type Styles struct {
	Good, Busy, Bad, Faint, Strong func(string) string
}

// Plain is without colour.
func Plain() Styles {
	same := func(text string) string { return text }
	return Styles{Good: same, Busy: same, Bad: same, Faint: same, Strong: same}
}

// Colored is with colour.
func Colored() Styles {
	none := ansi.Style{}
	return Styles{
		Good:   none.ForegroundColor(ansi.Green).Styled,
		Busy:   none.ForegroundColor(ansi.Cyan).Styled,
		Bad:    none.ForegroundColor(ansi.Red).Styled,
		Faint:  none.Faint().Styled,
		Strong: none.Bold().Styled,
	}
}

// StylesFor returns the styles for output to w.
func StylesFor(w io.Writer) Styles {
	if IsTerminal(w) && os.Getenv("NO_COLOR") == "" {
		return Colored()
	}
	return Plain()
}

// IsTerminal reports whether w is a terminal that can be drawn on.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Size returns the columns and lines of the terminal that w is, or the usual ones.
func Size(w io.Writer) (width, height int) {
	if f, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// WidthOf returns the columns of the terminal that w is, 0 if it is none.
func WidthOf(w io.Writer) int {
	if !IsTerminal(w) {
		return 0
	}
	width, _ := Size(w)
	return width
}

// Pad fills text with spaces up to a width in columns. Styles do not count.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// Truncate cuts text at a width in columns and marks the cut.
func Truncate(text string, width int) string { return ansi.Truncate(text, width, "…") }

// Wrap breaks text without styles into lines of at most width columns, at
// spaces where there are any.
func Wrap(text string, width int) []string {
	if width < 1 {
		width = 1
	}
	lines := strings.Split(ansi.Wrap(text, width, ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// Table lays rows out in columns that are as wide as their widest cell, two
// spaces apart. Styles do not count.
func Table(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
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
