// Package spelling finds what a misspelt name might mean.
package spelling

import (
	"slices"
	"strings"
)

// Nearest returns the known name with the smallest edit distance, if that is small enough for a
// typing error. The limits prevent a hostile package from making it search among many names.
func Nearest(written string, known []string) (string, bool) {
	if len(written) > 64 || len(known) > 200 {
		return "", false
	}

	best, bestDistance := "", len(written)
	for _, name := range slices.Sorted(slices.Values(known)) {
		if strings.EqualFold(name, written) {
			return name, true
		}
		if longer := len(name) - len(written); longer >= bestDistance || -longer >= bestDistance {
			continue // at least as far away
		}
		// One typing error is likely for every three letters.
		if d := distance(written, name); d <= max(1, max(len(written), len(name))/3) && d < bestDistance {
			best, bestDistance = name, d
		}
	}

	return best, best != ""
}

// distance is the edit distance. A transposition counts once.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}

	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}

	return last[len(b)]
}
