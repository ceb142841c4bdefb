package probes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
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
		if over := cost > limits.ProbeObjectCost; over != named {
			t.Errorf("%s: a cost of %d is called %q", test.reason, cost, result.Message())
		}
	}
}
