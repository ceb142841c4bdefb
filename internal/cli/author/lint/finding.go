package lint

import (
	"cmp"
	"fmt"
	"slices"

	"lockstep.run/lockstep/internal/loader/violation"
)

// Level is the severity of a rule.
type Level string

// Levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// levels, the most severe one first.
var levels = []Level{Error, Warning, Info}

// AtLeast reports whether a level is at least as severe as another.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(levels, l) <= slices.Index(levels, other)
}

// Finding is a mistake that a rule found.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`

	violation.Violation
}

// compare orders findings by level and place.
func (f Finding) compare(o Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(levels, f.Level), slices.Index(levels, o.Level)),
		cmp.Compare(f.Component, o.Component), cmp.Compare(f.Path, o.Path), cmp.Compare(f.Document, o.Document),
		cmp.Compare(f.Rule, o.Rule), cmp.Compare(f.Object, o.Object), cmp.Compare(f.Field, o.Field), cmp.Compare(f.Details, o.Details),
	)
}

// reporter collects the findings of one rule in one case.
type reporter struct {
	base     Finding
	findings *[]Finding
}

// newReporter returns a reporter for a rule. A finding without another place is in the manifest.
func newReporter(rule Rule, c *oneCase, findings *[]Finding) reporter {
	base := Finding{rule.Name, rule.Level, violation.Violation{Component: c.Component, Path: "manifest.yaml"}}
	if _, ok := c.files["manifest.yml"]; ok {
		base.Path = "manifest.yml"
	}
	return reporter{base, findings}
}

// at reports a mistake in an object.
func (r reporter) at(o *object, field, remedy, format string, args ...any) {
	r.base.Path, r.base.Document, r.base.Line, r.base.Object = o.source.Path, o.source.Document, o.source.Line, o.source.Object
	r.manifest(field, remedy, format, args...)
}

// manifest reports a mistake in the manifest.
func (r reporter) manifest(field, remedy, format string, args ...any) {
	r.base.Field, r.base.Details, r.base.Remedy = field, fmt.Sprintf(format, args...), remedy
	*r.findings = append(*r.findings, r.base)
}

// unique sorts findings and drops duplicates from several cases: findings of the same rule, place
// and field. Names of objects can differ between cases.
func unique(findings []Finding) []Finding {
	slices.SortStableFunc(findings, Finding.compare)
	seen := map[Finding]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		// The remaining fields identify a finding.
		f.Line, f.Object, f.Remedy = 0, "", ""
		if f.Document != 0 {
			f.Details = ""
		}
		duplicate := seen[f]
		seen[f] = true
		return duplicate
	})
}
