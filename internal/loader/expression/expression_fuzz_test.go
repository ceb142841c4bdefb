package expression

import (
	"testing"

	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/fuzzing"
)

// FuzzExpression checks that every expression is true, false or an error, that two evaluations
// agree, and that it can read only its variables.
//
// Code: expression.go
func FuzzExpression(f *testing.F) {
	fuzzing.SetCanary(f)
	for _, seed := range []string{
		"true", "config.replicas > 1", ".config.on", "has(config.missing) && config.missing", "'kubernetes' in environment", "package.metadata.name == ''",
		"cond.yes || cond.no", "config.list.exists(x, x == 2)", "[1,2,3].all(x, [1,2,3].all(y, x + y > 0))", "config.name.matches('^s.*p$')", "images['web'].startsWith('e')",
		"timestamp('2026-01-01T00:00:00Z') > timestamp('2025-01-01T00:00:00Z')", "1 / 0 == 1", "config.missing.deep", "dyn(config.list)[5] == 1", "'a' + b'b' == 'ab'", "{'a': 1}['b'] == 1",
		"1 in [[0]].map(y, y + y).map(y, y + y)[0]", "config.list.map(x, [x, x]).map(x, {'a': x, 'b': x}) == [config]", "[config.list.filter(x, x != null)] == [[[config]]]",
		"size(config.name) == 4 ? config.on : !config.on", "type(config.replicas) == double", "\"\\u202e\" == 'x'",
	} {
		f.Add(seed)
	}

	context := map[string]any{
		"package":     map[string]any{"metadata": map[string]any{"name": "shop", "namespace": ""}},
		"config":      map[string]any{"replicas": 2.0, "on": true, "name": "shop", "list": []any{1.0, 2.0, "x", nil}},
		"images":      map[string]any{"web": "example.com/web@sha256:1"},
		"environment": map[string]any{"kubernetes": map[string]any{"version": "v1.36.3"}},
	}

	conditions := map[string]bool{"yes": true, "no": false}
	fresh := func() *Evaluator { return New(context).WithConditions(conditions) }
	evaluator, used := fresh(), 0
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<10 {
			return
		}
		// An evaluator keeps all compiled expressions, because it lives for one package.
		if used++; used%500 == 0 {
			evaluator = fresh()
		}
		ctx, cancel := fuzzing.Context(t)
		defer cancel()
		value, err := evaluator.Bool(ctx, text)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			fuzzing.CheckViolations(t, violation.Violations{{Reason: violation.ReasonFilterInvalid, Details: err.Error()}})
		}
		if err != nil && (value || err.Error() == "") {
			t.Fatalf("%v and %q", value, err)
		}
		if again, errAgain := evaluator.Bool(ctx, text); ctx.Err() == nil && (again != value || (err == nil) != (errAgain == nil)) {
			t.Fatalf("%v, %v, then %v, %v", value, err, again, errAgain)
		}
	})
}
