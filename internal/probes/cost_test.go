package probes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

// TestCost checks that the costs of all CEL and jq probes on an object add up. Beyond the limit the
// object is Unknown, and its remaining probes are skipped.
func TestCost(t *testing.T) {
	t.Parallel()
	list := "[" + strings.Repeat("0,", 49) + "0]"
	loop := rule(fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, c == b)))", list), "false")
	const one = `{"apiVersion": "apps/v1", "kind": "Deployment", "list": [1, 2, 3], "text": "aaaa"}`
	for _, test := range []struct {
		reason      string
		probes      []corev1alpha1.Probe
		least, most int
		status      Status
	}{
		{"nothing", nil, 0, 0, True},
		{"a condition", []corev1alpha1.Probe{condition("a", "")}, probeCost, probeCost, Unknown},
		{"a rule", []corev1alpha1.Probe{rule("self.list.size() == 3", "false")}, probeCost + 1, probeCost + 20, True},
		{"a pattern", []corev1alpha1.Probe{rule("self.text.matches('^(a{1,10}){1,10}$')", "false")}, probeCost + 50, probeCost + 200, True},
		{"jq", []corev1alpha1.Probe{fieldsEqual(".list | map(. + 1) | length", ".list | length")}, probeCost + 20, probeCost + 200, True},
		{"a loop", []corev1alpha1.Probe{loop}, limits.ProbeCELCost / 2, limits.ProbeCELCost + probeCost, True},
		{"more than allowed for a rule", []corev1alpha1.Probe{rule(strings.Replace(loop.CEL.Rule, "c == b", "c + c + c + c == b", 1), "false")}, limits.ProbeCELCost, limits.ProbeCELCost + 100, Unknown},
		{"more than allowed for an object", slices.Repeat([]corev1alpha1.Probe{loop}, 100), limits.ProbeObjectCost, limits.ProbeObjectCost + limits.ProbeCELCost, Unknown},
	} {
		result, cost := mustCompile(t, entryFor(test.probes...)).EvaluateTrimmed([]byte(one), false)
		if cost < test.least || cost > test.most || result.Status != test.status {
			t.Errorf("%s: %+v costs %d, want %s and %d to %d", test.reason, result, cost, test.status, test.least, test.most)
		}
		named := strings.Contains(result.Message(), fmt.Sprintf("more than %d together", limits.ProbeObjectCost))
		require.Equal(t, named, cost > limits.ProbeObjectCost, fmt.Sprintf("%s: a cost of %d is called %q", test.reason, cost, result.Message()))
	}
}

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

// Regular expressions have the meaning that CEL and Kubernetes' library give them.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		`self.metadata.name.matches("^w.b$")`:                          "a method",
		`matches(self.metadata.name, "e")`:                             "a function",
		`!self.metadata.name.matches("^e")`:                            "no match",
		`self.metadata.name.find("x") == ""`:                           "nothing found",
		`self.metadata.name.findAll("[a-z]") == ["w", "e", "b"]`:       "all",
		`self.metadata.name.findAll("[a-z]", 2) == ["w", "e"]`:         "some",
		`self.metadata.name.findAll("x") == []`:                        "none",
		`["we", "web"].exists(p, self.metadata.name.matches(p + "$"))`: "a pattern that is computed",
	} {
		set := mustCompile(t, entryFor(rule(text, "false")))
		if got := set.Evaluate(yamltest.Decode(t, deployment)); got.Status != True {
			t.Errorf("%s: %s: %v", reason, text, got)
		}
	}
}

// A regular expression over a long text does bounded work, both in one call and in total.
func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	object := func(length int) map[string]any {
		raw, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "text": strings.Repeat("a", length)})
		require.NoError(t, err)
		return yamltest.Decode(t, string(raw))
	}

	const large = `"(((a{1,10}){1,10}){1,10}b|c)"`
	tests := []struct {
		reason, rule, want string
		length             int
	}{
		{"a short pattern is a large program", `self.text.matches(` + large + `)`, "cost limit exceeded", 1 << 20},
		{"computed", `self.text.matches("" + ` + large + `)`, "cost limit exceeded", 1 << 20},
		{"find", `self.text.find(` + large + `) == "a"`, "cost limit exceeded", 1 << 20},
		{"findAll", `self.text.findAll(` + large + `).size() == 1`, "cost limit exceeded", 1 << 20},
		{"again and again", `[1,2,3,4,5,6,7,8,9].all(x, [1,2,3,4,5,6,7,8,9].all(y, !self.text.matches(` + large + `)))`, "cost limit exceeded", 4000},
	}

	for _, test := range tests {
		set := mustCompile(t, entryFor(rule(test.rule, "false")))
		got := set.Evaluate(object(test.length))
		if got.Status != Unknown || !strings.Contains(strings.Join(got.Messages, " "), test.want) {
			t.Errorf("%s: %v, want %q", test.reason, got, test.want)
		}
	}

	for text, want := range map[string]string{
		`self.text.matches("(")`:                                     "missing closing",
		`self.text.find("` + strings.Repeat("a", 15000) + `") == ""`: "the limit is",
	} {
		_, err := Compile([]corev1alpha1.ObjectSetProbe{entryFor(rule(text, ""))})
		require.ErrorContains(t, err, want, fmt.Sprintf("Compile(%.40s…)", text))
	}
}
