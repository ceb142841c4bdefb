package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects"
)

// DisableAnnotation on a manifest names the rules that do not apply to the package, separated by
// commas.
const DisableAnnotation = "lint.lockstep.run/disable"

// Options choose the rules.
type Options struct {
	// Disable are the rules that do not run.
	Disable []string
	// From are the files of the package to upgrade; nil if there is none.
	From loader.Files
}

// Run returns the findings of the rules. The error for an invalid package is of type
// violation.Violations.
func Run(ctx context.Context, files loader.Files, opts Options) ([]Finding, error) {
	known := ruleNames()
	// A mistyped rule would otherwise be disabled without an effect.
	for _, name := range opts.Disable {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("the rule %q does not exist. %s", name, violation.Suggest(name, known, "The rules are: "+strings.Join(known, ", ")+"."))
		}
	}

	cases, err := load(ctx, files, true)
	if err != nil {
		return nil, err
	}
	if opts.From != nil {
		older, err := load(ctx, opts.From, false)
		if err != nil {
			// Its problems are text, because the reader would look for violations in the newer package.
			return nil, errors.New("the older package is invalid: " + err.Error())
		}
		pair(cases, older)
	}

	findings := []Finding{}
	for _, c := range cases {
		disabled := append(disabledRules(c.manifest), opts.Disable...)
		for _, rule := range Rules() {
			if !slices.Contains(disabled, rule.Name) {
				rule.check(c, newReporter(rule, c, &findings))
			}
		}
	}

	return unique(findings), nil
}

// load returns all cases of a package. With schemas, objects that the API server would refuse are
// an error.
func load(ctx context.Context, files loader.Files, schemas bool) ([]*oneCase, error) {
	session := schemacheck.NewSession(nil)
	var cases []*oneCase
	var failed error
	var refused violation.Violations
	byComponent := map[string][]*oneCase{}
	_, err := loader.Inspect(ctx, files, func(of loader.Case) {
		c, err := newCase(session, files, of)
		if schemas && err == nil {
			var report schemacheck.Report
			report, err = session.Check(ctx, of.Component, of.Package)
			refused = append(refused, report.Problems...)
		}

		failed = cmp.Or(failed, err)
		cases = append(cases, c)
		byComponent[of.Component] = append(byComponent[of.Component], c)
	})
	if err = cmp.Or(err, failed, refused.Sorted().Err()); err != nil {
		return nil, err
	}

	for _, c := range cases {
		c.siblings = byComponent[c.Component]
	}

	return cases, nil
}

// pair adds to each case the objects of its counterpart in an older package: the case of the same
// component and name, or the component's first case.
func pair(cases, older []*oneCase) {
	for _, c := range cases {
		var match *oneCase
		for _, o := range older {
			same := o.Component == c.Component && (o.namespace == "") == (c.namespace == "")
			if same && (match == nil || o.Name == c.Name && match.Name != c.Name) {
				match = o
			}
		}

		if match == nil {
			continue
		}
		c.former = map[objects.Key]*object{}
		for _, o := range match.objects {
			c.former[match.key(o)] = o
		}
	}
}

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
