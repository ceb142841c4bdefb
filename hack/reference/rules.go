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
	b.WriteString("The findings of [`kubectl package lint`](../lint.md). An *error* fails or does harm in a cluster, a *warning* does so later or under load, and an *info* improves the package.\n\n| Rule | Level | Finds | Remedy |\n|---|---|---|---|\n")
	for _, rule := range lint.Rules() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", rule.Name, rule.Level, strings.ReplaceAll(rule.Summary, "|", `\|`), strings.ReplaceAll(rule.Remedy, "|", `\|`))
	}
	return b.String()
}
