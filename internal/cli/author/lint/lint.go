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
