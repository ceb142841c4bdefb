package repository

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// compareVersions orders by precedence and, where that is equal, by build metadata, none of it first: so that any
// versions have one order.
func compareVersions(a, b *semver.Version) int {
	return cmp.Or(a.Compare(b), compareBuilds(a.Metadata(), b.Metadata()), cmp.Compare(a.Original(), b.Original()))
}

func compareBuilds(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		c := cmp.Compare(x, y)
		switch xNumber, yNumber := isNumber(x), isNumber(y); {
		case xNumber && yNumber:
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			c = cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		case xNumber:
			c = -1
		case yNumber:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
