package repository

import (
	"cmp"
	"regexp"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// revisionText matches integers with dots between them.
var revisionText = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`)

// revision checks a revision; an empty one is valid.
func (r *reporter) revision(field, text string) {
	if text != "" && (len(text) > limits.RevisionBytes || !revisionText.MatchString(text)) {
		r.fail(field, "Write it as 1.2.", "%q is not a revision: integers with dots between them, of at most %d bytes together", text, limits.RevisionBytes)
	}
}

// CompareRevisions compares revisions element by element, as integers. If one is a prefix of the
// other, the longer one is higher. The empty revision is the lowest.
func CompareRevisions(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
