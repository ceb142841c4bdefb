package manager

import (
	"math"
	"testing"
)

func TestLimitFor(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, tc := range map[string]struct {
		reason           string
		live, most, want int64
	}{
		"nothing known":          {"before the first collection", 0, math.MaxInt64, 40 * mebibyte},
		"small":                  {"a heap that was large in between stays so", 15*mebibyte + 5, math.MaxInt64, 45 * mebibyte},
		"some thousand objects":  {"collecting takes little of the time", 27 * mebibyte, math.MaxInt64, 80 * mebibyte},
		"ten thousand objects":   {"collecting has to leave time for work", 50 * mebibyte, math.MaxInt64, 91 * mebibyte},
		"huge":                   {"collecting has to leave time for work", 200 * mebibyte, math.MaxInt64, 316 * mebibyte},
		"huge in a small memory": {"GOMEMLIMIT is not exceeded", 200 * mebibyte, 250 * mebibyte, 250 * mebibyte},
		"a small memory":         {"GOMEMLIMIT is not exceeded", 0, 20 * mebibyte, 20 * mebibyte},
	} {
		if got := limitFor(tc.live, tc.most); got != tc.want {
			t.Errorf("%s (%s): got %d MiB, want %d", name, tc.reason, got/mebibyte, tc.want/mebibyte)
		}
	}
}
