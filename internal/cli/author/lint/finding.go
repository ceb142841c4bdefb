package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/loader"
)

// Level is how bad it is.
type Level string

// Levels, the worst first.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// levels in their order.
var levels = []Level{Error, Warning, Info}

// AtLeast reports whether a level is as bad as another, or worse.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(levels, l) <= slices.Index(levels, other)
}

// Finding is what a rule found.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	// Component of the package; empty for the root.
	Component string `json:"component,omitempty"`
	// Path of the file; document and line count from 1, and 0 means the file as
	// a whole.
	Path     string `json:"path,omitempty"`
	Document int    `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	// Object such as "apps/v1 Deployment web".
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
	// Details say what is found, Remedy what to do.
	Details string `json:"details"`
	Remedy  string `json:"remedy,omitempty"`
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
	rule     *Rule
	c        *oneCase
	findings *[]Finding
	// known are the names of all rules.
	known []string
}

// at reports something about an object.
func (r reporter) at(o *object, field, remedy, format string, args ...any) {
	*r.findings = append(*r.findings, Finding{
		Rule: r.rule.Name, Level: r.rule.Level, Component: r.c.Component, Path: o.source.Path, Document: o.source.Document,
		Line: o.source.Line, Object: o.source.Object, Field: field, Details: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

// manifest reports something about the manifest.
func (r reporter) manifest(field, remedy, format string, args ...any) {
	*r.findings = append(*r.findings, Finding{
		Rule: r.rule.Name, Level: r.rule.Level, Component: r.c.Component, Path: manifestPath(r.c.files), Field: field,
		Details: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

func manifestPath(files loader.Files) string {
	if _, ok := files["manifest.yml"]; ok {
		return "manifest.yml"
	}
	return "manifest.yaml"
}

// unique sorts findings and drops what several cases found: the same rule, place
// and field. The object's name may differ from case to case.
func unique(findings []Finding) []Finding {
	slices.SortStableFunc(findings, Finding.compare)
	seen := map[string]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		key := strings.Join([]string{f.Rule, f.Component, f.Path, fmt.Sprint(f.Document), f.Field}, "\x00")
		if f.Document == 0 {
			key += f.Details
		}
		twice := seen[key]
		seen[key] = true
		return twice
	})
}
