package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// Constraint is a set of versions.
type Constraint struct {
	text   string
	groups []group // one of them has to match; an empty list matches everything
	// prerelease reports whether the constraint is one exact prerelease.
	prerelease bool
}

// group is the text between two "||". All of its terms have to match.
type group struct {
	ranges *semver.Constraints
	terms  []string
	exact  []string // versions with build metadata, which match only the exact text
}

// ParseConstraint parses a constraint within limits.TemplatePatternBytes, ConstraintGroups and
// ConstraintTerms. The empty constraint matches every version. The error has the problem and a
// remedy.
func ParseConstraint(text string) (*Constraint, error) {
	c := &Constraint{text: strings.TrimSpace(text)}
	if c.text == "" {
		return c, nil
	}
	if len(text) > limits.TemplatePatternBytes {
		return nil, fmt.Errorf("the constraint has %d bytes; the limit is %d", len(text), limits.TemplatePatternBytes)
	}
	if n := strings.Count(text, "||") + 1; n > limits.ConstraintGroups {
		return nil, fmt.Errorf("the constraint has %d alternatives between \"||\"; the limit is %d", n, limits.ConstraintGroups)
	}

	parsed, err := manifest.ParseRange(c.text)
	if err != nil {
		return nil, invalid(c.text)
	}

	for canonical := range strings.SplitSeq(parsed.String(), " || ") {
		g, err := parseGroup(canonical)
		if err != nil {
			return nil, invalid(c.text)
		}
		c.groups = append(c.groups, g)
	}

	terms := 0
	for _, g := range c.groups {
		terms += len(g.terms)
	}

	if terms > limits.ConstraintTerms {
		return nil, fmt.Errorf("the constraint has %d comparisons; the limit is %d", terms, limits.ConstraintTerms)
	}
	if terms == 1 {
		v, ok := exactly(c.groups[0].terms[0])
		c.prerelease = ok && v.Prerelease() != ""
	}

	return c, nil
}

// invalid returns the error of an invalid constraint, with its first invalid alternative.
func invalid(text string) error {
	part := ""
	if alternatives := strings.Split(text, "||"); len(alternatives) > 1 {
		at := slices.IndexFunc(alternatives, func(a string) bool { _, err := manifest.ParseRange(a); return err != nil })
		if at >= 0 {
			part = fmt.Sprintf(" because of its alternative %s", quoted(strings.TrimSpace(alternatives[at])))
		}
	}
	return fmt.Errorf("%s is not a constraint on versions%s: write it as \">=1.2, <2\"", quoted(text), part)
}

// parseGroup parses a group in semver's output format: terms with spaces only between them.
func parseGroup(canonical string) (group, error) {
	ranges, err := semver.NewConstraint(canonical)
	if err != nil {
		return group{}, err
	}
	ranges.IncludePrerelease = true // admission has already decided about prereleases
	g := group{ranges: ranges, terms: strings.Fields(canonical)}
	for _, term := range g.terms {
		if v, ok := exactly(term); ok && v.Metadata() != "" {
			g.exact = append(g.exact, v.String())
		}
	}
	return g, nil
}

// exactly returns the version of a term that means a single version.
func exactly(term string) (*semver.Version, bool) {
	v, err := Parse(strings.TrimPrefix(term, "="))
	return v, err == nil
}

// Matches reports whether a version fits: it is a semantic version, pre admits it, and it is within
// the constraint.
func (c *Constraint) Matches(version string, pre *corev1alpha1.Prereleases) bool {
	v, err := Parse(version)
	return err == nil && c.Admits(v, pre)
}

// Admits is Matches for a parsed version.
func (c *Constraint) Admits(v *semver.Version, pre *corev1alpha1.Prereleases) bool {
	return c.admission(pre).admits(v) && c.contains(v)
}

// String returns the text of the constraint.
func (c *Constraint) String() string { return c.text }

// contains reports whether a version is within the constraint, regardless of prereleases.
func (c *Constraint) contains(v *semver.Version) bool {
	return len(c.groups) == 0 || slices.ContainsFunc(c.groups, func(g group) bool {
		return g.ranges.Check(v) && !slices.ContainsFunc(g.exact, func(text string) bool { return text != v.String() })
	})
}

// Names reports whether the constraint is this single version.
func (c *Constraint) Names(v *semver.Version) bool {
	if len(c.groups) != 1 || len(c.groups[0].terms) != 1 {
		return false
	}
	want, ok := exactly(c.groups[0].terms[0])
	return ok && want.Equal(v)
}

// admission decides which prereleases take part. Releases always do.
type admission struct {
	all         bool
	identifiers []string
}

// admission decides by the selection. A constraint that is itself a prerelease admits it without
// further settings.
func (c *Constraint) admission(pre *corev1alpha1.Prereleases) admission {
	switch {
	case c.prerelease || pre != nil && len(pre.Identifiers) == 0:
		return admission{all: true}
	case pre == nil:
		return admission{}
	}
	return admission{identifiers: pre.Identifiers}
}

// admits reports whether any identifier of a prerelease is listed.
func (a admission) admits(v *semver.Version) bool {
	if a.all || v.Prerelease() == "" {
		return true
	}
	for part := range strings.SplitSeq(v.Prerelease(), ".") {
		if slices.Contains(a.identifiers, part) {
			return true
		}
	}
	return false
}
