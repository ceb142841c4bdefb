package celcost

import (
	"testing"

	"github.com/google/cel-go/cel"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/fuzzing"
)

// An expression never builds more than is allowed. If the estimate is small, it
// does not build much more than that either.
//
// Code: celsize.go, estimate.go, shape.go
func FuzzGrowth(f *testing.F) {
	for _, seed := range []string{
		"[self, self]", "[[0]].map(y, y + y).map(y, [y, y])", "self.a.map(x, self.b)", "{'a': self, 'b': [self.a]}", "self.a.filter(x, x in self.b).map(x, [x])",
		"[1, 2].map(x, self.a.map(y, [x, y]))", "self.a + self.a + self.b", "true ? [self] : [1]", "[self][0].a", "self.a.exists(x, [x] == [1])",
	} {
		f.Add(seed)
	}
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		f.Fatal(err)
	}
	self := map[string]any{"a": []any{int64(1), "x", []any{true}}, "b": []any{}}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 {
			return
		}
		tree, issues := env.Parse(text)
		if issues.Err() != nil || Shape(tree.NativeRep().Expr()) != nil {
			return
		}
		estimated := Estimate(tree.NativeRep().Expr(), 10)
		if tree, issues = env.Check(tree); issues.Err() != nil {
			return
		}
		program, err := env.Program(tree, Option(), cel.CostLimit(10_000), cel.InterruptCheckFrequency(1))
		if err != nil {
			return
		}
		ctx, cancel := fuzzing.Context(t)
		defer cancel()
		variables := map[string]any{"self": self}
		budget := NewBudget()
		budget.AddTo(variables)
		value, _, err := program.ContextEval(ctx, variables)
		if err != nil || ctx.Err() != nil {
			return
		}
		m := meter{}
		m.add(value)
		if m.values <= limits.ExpressionValues && estimated < 1000 && float64(m.values) > 2*estimated+10 {
			t.Fatalf("%d values are built, and %g were estimated", m.values, estimated)
		}
		if budget.left < 0 {
			t.Fatalf("the budget is %d", budget.left)
		}
	})
}
