package versions

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseVersion parses a semantic version, with or without a leading v. Missing numbers are 0.
func ParseVersion(text string) (*semver.Version, error) {
	v, err := semver.NewVersion(bounded(text))
	if err != nil {
		return nil, fmt.Errorf("%s is not a semantic version: write it as v1.2.3", quoted(text))
	}
	return v, nil
}

// Parse parses a version that can be chosen: a semantic version with all three numbers, with or
// without a leading v.
func Parse(text string) (*semver.Version, error) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(bounded(text), "v"))
	if err != nil {
		return nil, fmt.Errorf("%s is not a semantic version: write it as 1.2.3", quoted(text))
	}
	return v, nil
}

// bounded returns the text, or an empty string if it is longer than any version.
func bounded(text string) string {
	if len(text) > validation.DNS1123SubdomainMaxLength {
		return ""
	}
	return text
}

// Compare orders versions by precedence, and versions of equal precedence by build metadata. A
// version without build metadata is the lowest of these.
func Compare(a, b *semver.Version) int {
	return cmp.Or(a.Compare(b), compareBuild(a.Metadata(), b.Metadata()))
}

// compareBuild orders build metadata part by part: numbers by value, and below text. If one is a
// prefix of the other, the longer one is higher.
func compareBuild(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := comparePart(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// comparePart compares one identifier. Numbers of equal value are ordered by their leading zeros,
// so that different texts are never equal.
func comparePart(a, b string) int {
	switch x, y := isNumber(a), isNumber(b); {
	case x && y:
		m, n := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n), cmp.Compare(len(a), len(b)))
	case x:
		return -1
	case y:
		return 1
	}
	return cmp.Compare(a, b)
}

// isNumber reports whether an identifier has only digits.
func isNumber(part string) bool { return strings.Trim(part, "0123456789") == "" }
