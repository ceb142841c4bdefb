package probes

import (
	"encoding/json"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

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
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%.40s…) = %v, want %q", text, err, want)
		}
	}
}
