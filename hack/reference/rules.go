package main

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/cli/author/lint"
)

// lintRules returns the page of the rules of kubectl package lint.
func lintRules() string {
	var b strings.Builder
	b.WriteString(header("Lint rules", "internal/cli/author/lint"))
	b.WriteString("What [`kubectl package lint`](../lint.md) looks for. An *error* is what fails or hurts in a cluster, a *warning* what does so later or under load, an *info* what makes a package better.\n\n| Rule | Level | Finds | Remedy |\n|---|---|---|---|\n")
	for _, rule := range lint.Rules() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", rule.Name, rule.Level, strings.ReplaceAll(rule.Summary, "|", `\|`), strings.ReplaceAll(rule.Remedy, "|", `\|`))
	}
	return b.String()
}
