package probes

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// A rule that doubles a list with every few characters is refused at once. Otherwise it would hold
// up the engine on every change of the object.
func TestRulesThatGrow(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{
		"1 in [[0]]" + strings.Repeat(".map(y, y + y)", limits.ExpressionMacros-1) + "[0]",
		"self.list" + strings.Repeat(".map(y, [y, y])", limits.ExpressionMacros-2) + " == self.list",
	} {
		compiled, err := compileCEL(rule)
		require.NoError(t, err)
		got := celProbe{celProgram: compiled}.evaluate(&object{root: map[string]any{"list": []any{int64(1), "a"}}})
		if got.status == True || !strings.Contains(got.message, "builds a list or map of more than") {
			t.Errorf("%.60s: %+v", rule, got)
		}
	}

	if _, err := compileCEL("[0]" + strings.Repeat(".map(y, [y])", limits.ExpressionMacros+1) + " == []"); err == nil {
		t.Error("types that nest are accepted")
	}
}
