package objects_test

import (
	"testing"

	"lockstep.run/lockstep/internal/objects"
)

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	condition := func(typ, status string) map[string]any { return map[string]any{"type": typ, "status": status} }
	for name, tc := range map[string]struct {
		conditions any
		want       objects.Outcome
	}{
		"no status":           {},
		"suspended":           {conditions: []any{condition("Suspended", "True")}},
		"complete":            {conditions: []any{condition("Suspended", "False"), condition("Complete", "True")}, want: objects.Succeeded},
		"criteria met":        {conditions: []any{condition("SuccessCriteriaMet", "True")}, want: objects.Succeeded},
		"not complete":        {conditions: []any{condition("Complete", "False")}},
		"about to fail":       {conditions: []any{condition("FailureTarget", "True")}},
		"failed":              {conditions: []any{condition("FailureTarget", "True"), condition("Failed", "True")}, want: objects.Failed},
		"not as it has to be": {conditions: []any{"Complete", nil, 7}},
		"no list":             {conditions: "Complete"},
	} {
		job := map[string]any{}
		if tc.conditions != nil {
			job["status"] = map[string]any{"conditions": tc.conditions}
		}
		if got := objects.OutcomeOf(job); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
