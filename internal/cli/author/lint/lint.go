package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects"
)

// Rule is one thing to look for.
type Rule struct {
	// Name is fixed.
	Name string `json:"name"`
	// Level of what it finds.
	Level Level `json:"level"`
	// Summary says in a sentence what it finds and why that matters.
	Summary string `json:"summary"`

	check func(*oneCase, reporter)
}

// DisableAnnotation on a manifest names rules, separated by commas, that do not
// apply to the package.
const DisableAnnotation = "lint.lockstep.run/disable"

// Rules returns all rules, sorted by level and name.
func Rules() []Rule {
	all := slices.Concat(phaseRules, probeRules, objectRules, upgradeRules, manifestRules)
	slices.SortFunc(all, func(a, b Rule) int {
		if a.Level != b.Level {
			return slices.Index(levels, a.Level) - slices.Index(levels, b.Level)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

// Options choose the rules.
type Options struct {
	// Only these rules, where there are any; never those of Disable.
	Only, Disable []string
	// From are the files of the package that is upgraded; nil means none.
	From loader.Files
}

// FromError is that the package of Options.From cannot be loaded.
type FromError struct{ Err error }

// Error says of which package the cause is.
func (e *FromError) Error() string { return "the package that is upgraded: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FromError) Unwrap() error { return e.Err }

// Run returns what the rules find. Where the package is not valid, its error is
// of type violation.Violations.
func Run(ctx context.Context, files loader.Files, opts Options) ([]Finding, error) {
	rules, err := choose(opts)
	if err != nil {
		return nil, err
	}
	cases, err := load(ctx, files)
	if err != nil {
		return nil, err
	}
	if opts.From != nil {
		older, err := load(ctx, opts.From)
		if err != nil {
			return nil, &FromError{err}
		}
		pair(cases, older)
	}
	findings, known := []Finding{}, names(Rules())
	for _, c := range cases {
		disabled := split(c.manifest.Annotations[DisableAnnotation])
		for i := range rules {
			if !slices.Contains(disabled, rules[i].Name) {
				rules[i].check(c, reporter{rule: &rules[i], c: c, findings: &findings, known: known})
			}
		}
	}
	return unique(findings), nil
}

// load returns the package in all of its cases.
func load(ctx context.Context, files loader.Files) ([]*oneCase, error) {
	session := schemacheck.NewSession(nil)
	var cases []*oneCase
	var failed error
	_, err := loader.Inspect(ctx, files, func(of loader.Case) {
		c, err := newCase(session, files, of)
		if err != nil && failed == nil {
			failed = err
		}
		cases = append(cases, c)
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	byComponent := map[string][]*oneCase{}
	for _, c := range cases {
		byComponent[c.Component] = append(byComponent[c.Component], c)
	}
	for _, c := range cases {
		c.siblings = byComponent[c.Component]
	}
	return cases, nil
}

// pair gives each case the objects of the same case of an older package: of the
// same component and name, or the first of the component.
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

// choose returns the rules that options ask for.
func choose(opts Options) ([]Rule, error) {
	all := Rules()
	known := names(all)
	for _, name := range slices.Concat(opts.Only, opts.Disable) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no rule %q. %s", name, violation.Suggest(name, known, "The rules are: "+strings.Join(known, ", ")+"."))
		}
	}
	return slices.DeleteFunc(all, func(rule Rule) bool {
		return slices.Contains(opts.Disable, rule.Name) || len(opts.Only) > 0 && !slices.Contains(opts.Only, rule.Name)
	}), nil
}

func names(rules []Rule) []string {
	all := make([]string, len(rules))
	for i := range rules {
		all[i] = rules[i].Name
	}
	return all
}

func split(list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
