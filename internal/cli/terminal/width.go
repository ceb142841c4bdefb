package terminal

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Pad fills text with spaces up to a width in columns. Styles do not count.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
}

// Truncate cuts text without styles at a width in columns and marks the cut.
func Truncate(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	var out strings.Builder
	used := 0
	for _, r := range text {
		w := lipgloss.Width(string(r))
		if used+w > width-1 {
			break
		}
		used += w
		out.WriteRune(r)
	}
	return out.String() + "…"
}

// Wrap breaks text without styles into lines of at most width columns, at
// spaces where there are any.
func Wrap(text string, width int) []string {
	if width < 1 {
		width = 1
	}
	lines := strings.Split(lipgloss.Wrap(text, width, ""), "\n")
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
			widths[i] = max(widths[i], lipgloss.Width(cell))
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
