package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// printTable prints Markdown; the first line of cells is the head.
func printTable(w io.Writer, table [][]string) {
	width := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range table {
		for i, cell := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(w, "| %s%s |", cell, pad)
			} else {
				fmt.Fprintf(w, " %s%s |", pad, cell)
			}
		}
		fmt.Fprintln(w)
		if n == 0 {
			fmt.Fprintf(w, "|%s|", strings.Repeat("-", width[0]+2))
			for _, columns := range width[1:] {
				fmt.Fprintf(w, "%s:|", strings.Repeat("-", columns+1))
			}
			fmt.Fprintln(w)
		}
	}
}

func atMost(x row, name, format string) string {
	if most, ok := x.limitOf(name); ok {
		return fmt.Sprintf(format, most)
	}
	return ""
}

// decimals prints a number, and nothing for zero.
func decimals(format string, value float64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf(format, value)
}

func inMebibytes(bytes int64) string { return decimals("%.1f", float64(bytes)/(1<<20)) }
