package schemacheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cluster/schemas"
)

// fromSchema turns the error of a schema check into findings.
func fromSchema(err error) []Finding {
	if err == nil {
		return nil
	}
	var invalid *schemas.InvalidError
	if !errors.As(err, &invalid) {
		return []Finding{{Problem: err.Error()}}
	}
	var findings []Finding
	for _, field := range invalid.Fields {
		findings = append(findings, fromField(field, false))
	}
	if invalid.More > 0 {
		findings = append(findings, Finding{Problem: fmt.Sprintf("%d more fields are wrong", invalid.More)})
	}
	return findings
}

func fromField(e schemas.FieldError, doubtful bool) Finding {
	f := Finding{Field: strings.TrimPrefix(e.Path, "."), Problem: e.Problem, Doubtful: doubtful}
	if e.Problem == schemas.Undeclared {
		f.Problem = "unknown field"
	}
	if e.Suggestion != "" {
		f.Remedy = fmt.Sprintf("Did you mean %q?", e.Suggestion)
	}
	return f
}

func join(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}
