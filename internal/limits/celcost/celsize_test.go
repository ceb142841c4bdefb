package celcost

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	env, err := cel.NewEnv()
	require.NoError(t, err)
	const variable = 1000
	for _, test := range []struct {
		reason, text string
		least, most  float64
	}{
		{"a verdict does not build a value", "self.a == self.b && self.c.all(x, x > 1)", variable, variable},
		{"a part is not more than the whole", "self.a.b[0].c == 1", variable, variable},
		{"a literal has the size of its elements", "[self.a, self.b] == []", 2 * variable, 2*variable + 1},
		{"sizes of operands add up", "self.a + self.b + self.c == []", 3 * variable, 3*variable + 10},
		{"each element is in the outcome once", "self.a.map(x, x.name) == []", variable, 5 * variable},
		{"filters keep", "self.a.filter(x, x.on && x in self.b) == []", variable, 5 * variable},
		{"elements that are doubled", "[[0]]" + strings.Repeat(".map(y, y + y)", 40) + " == []", 1 << 40, 1e30},
		{"elements that are nested", "[0]" + strings.Repeat(".map(y, [y, y])", 40) + " == []", 1 << 40, 1e60},
		{"a list that comes once for each element", "self.a.map(x, self.b) == []", variable * variable, 3 * variable * variable},
		{"the same, many times", "[self.a]" + strings.Repeat(".map(x, [1, 2, 3, 4].map(y, x))", 30) + " == []", 1 << 60, 1e60},
	} {
		tree, issues := env.Parse(test.text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		if got := Estimate(tree.NativeRep().Expr(), variable); got < test.least || got > test.most {
			t.Errorf("%s: %g, want %g to %g", test.reason, got, test.least, test.most)
		}
	}
}

// An expression is weighed with all that is in it.
func TestBudget(t *testing.T) {
	t.Parallel()
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	require.NoError(t, err)
	list := make([]any, 1000)
	for _, test := range []struct {
		text string
		want string
	}{
		{"[self].size() == 1", ""}, {"[1, 2, 3].size() == 3", ""}, {"{'a': self}.a.size() == 1000", ""},
		{"[" + strings.Repeat("self, ", 30) + "self].size() == 31", "builds a list or map of more than"},
		{"{" + strings.Repeat("'a': self, ", 1) + "'b': [" + strings.Repeat("self, ", 30) + "self]}.size() == 2", "builds a list or map of more than"},
		{"self.all(x, [self].all(y, [y].all(z, [z].size() == 1)))", "the lists and maps that are built have more than"},
	} {
		tree, issues := env.Compile(test.text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(tree, Option(), cel.CostLimit(limits.ExpressionCost))
		require.NoError(t, err)
		variables := map[string]any{"self": list}
		NewBudget().AddTo(variables)
		got, _, err := program.Eval(variables)
		if test.want == "" && (err != nil || got.Value() != true) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%.60s: %v, %v", test.text, got, err)
		}
		if _, _, err := program.Eval(map[string]any{"self": list}); err == nil && strings.Contains(test.text, "[self") {
			t.Errorf("%.60s: no budget, and no error", test.text)
		}
	}
}
