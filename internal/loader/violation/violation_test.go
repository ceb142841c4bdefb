package violation

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func TestString(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		v    Violation
		want string
	}{
		{Violation{Reason: ReasonNoFiles}, "Package image contains no files. Might be corrupted. Build the image with all files of the package below /package."},
		{Violation{Reason: ReasonInvalidYAML, Path: "a.yaml"}, "Invalid YAML in a.yaml. Correct the YAML at this place."},
		{
			Violation{
				Reason: ReasonUnknownPhase, Path: "a.yaml", Document: 2, Line: 7, Component: "web", Object: "v1 ConfigMap x",
				Field: "metadata.name", Details: "the problem", Remedy: "What to do.",
			},
			"Phase name not found in manifest in a.yaml idx 1 line 7 [web]: v1 ConfigMap x: metadata.name: the problem. What to do.",
		},
		{Violation{Reason: ReasonTemplate, Details: "a\nb\x1b[31m\u202ec\xff"}, "Template error: a b?[31m?c? Correct the template; `kubectl package render` renders it."},
		{Violation{Reason: ReasonTemplate, Details: strings.Repeat("ü", limits.DetailBytes)}, "Template error: " + strings.Repeat("ü", limits.DetailBytes/2) + "…. Correct the template; `kubectl package render` renders it."},
		{Violation{Reason: ReasonTemplate, Details: "why?", Remedy: "Because."}, "Template error: why? Because."},
	} {
		require.Equal(t, test.want, test.v.String())
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	a, b, c := Violation{Path: "a", Line: 2}, Violation{Path: "a", Line: 10}, Violation{Path: "b", Reason: ReasonTemplate}
	require.Equal(t, Violations{a, b, c}, Violations{c, b, a, b}.Sorted())
	var many Violations
	for i := range limits.Violations + 5 {
		many = append(many, Violation{Line: i + 1})
	}

	sorted := many.Sorted()
	if last := sorted[len(sorted)-1]; len(sorted) != limits.Violations+1 || last.Details != fmt.Sprintf("5 more problems are not shown; the limit is %d", limits.Violations) {
		t.Error(len(sorted), last)
	}
	if Violations(nil).Err() != nil {
		t.Error("no violations are not an error")
	}

	mixed := Violations{{Reason: ReasonObjectInvalid}, {Reason: ReasonTemplate}, {Reason: ReasonObjectScope}}
	require.Equal(t, corev1alpha1.ReasonTemplateError, mixed.ConditionReason(), "the earliest stage decides, not")
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"phases", "scopes", "availabilityProbes"}
	for written, want := range map[string]string{
		"phase": `Did you mean "phases"?`, "phsaes": `Did you mean "phases"?`, "Phases": `Did you mean "phases"?`,
		"fases": `Did you mean "phases"?`, "b": "Remove it.",
		"availabilityProbe": `Did you mean "availabilityProbes"?`, "zzz": "Remove it.", "": "Remove it.", strings.Repeat("x", 1000): "Remove it.",
	} {
		require.Equal(t, want, Suggest(written, known, "Remove it."), fmt.Sprintf("%.20s", written))
	}
}
