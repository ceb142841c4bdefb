package terminal

import (
	"io"
	"os"

	"charm.land/lipgloss/v2"
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
	style := func(s lipgloss.Style) func(string) string { return func(text string) string { return s.Render(text) } }
	return Styles{
		Good:   style(lipgloss.NewStyle().Foreground(lipgloss.Green)),
		Busy:   style(lipgloss.NewStyle().Foreground(lipgloss.Cyan)),
		Bad:    style(lipgloss.NewStyle().Foreground(lipgloss.Red)),
		Faint:  style(lipgloss.NewStyle().Faint(true)),
		Strong: style(lipgloss.NewStyle().Bold(true)),
	}
}

// StylesFor returns the styles for what is written to w.
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

// Size returns the columns and lines of the terminal that w is, or what is usual.
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
