package probes

import (
	"testing"

	"lockstep.run/lockstep/test/require"
)

// TestEvaluatePhase checks that only Available=True for the present generation counts.
func TestEvaluatePhase(t *testing.T) {
	t.Parallel()
	const status = `{"metadata":{"generation":3},"status":{"conditions":[{"type":"Paused","status":"True","observedGeneration":3},` +
		`{"type":"Available","status":"%","observedGeneration":#,"message":"@"}]}}`

	with := func(is, generation, message string) string {
		text := []byte{}
		for _, c := range []byte(status) {
			switch c {
			case '%':
				text = append(text, is...)
			case '#':
				text = append(text, generation...)
			case '@':
				text = append(text, message...)
			default:
				text = append(text, c)
			}
		}
		return string(text)
	}

	for name, tc := range map[string]struct {
		phase string
		want  Result
	}{
		"no agent":        {`{"metadata":{"generation":1}}`, Result{Messages: []string{`no status reported by the agent of class "far": is it running?`}}},
		"malformed":       {`{"status":{"conditions":7}}`, Result{Messages: []string{"malformed status"}}},
		"available":       {with("True", "3", ""), Result{Status: True}},
		"outdated":        {with("True", "2", ""), Result{Outdated: true, Messages: []string{`the agent of class "far" has not reported on its last change yet`}}},
		"not available":   {with("False", "3", `Phase \"deploy\" failed: ConfigMap shop/a: not ready`), Result{Status: False, Messages: []string{"ConfigMap shop/a: not ready"}}},
		"several lines":   {with("False", "3", `Phase \"deploy\"\nComplete: false\n\tObject a`), Result{Status: False, Messages: []string{`Phase "deploy" Complete: false Object a`}}},
		"without message": {with("Unknown", "3", ""), Result{Status: False, Messages: []string{"is not available"}}},
	} {
		require.Equal(t, tc.want, EvaluatePhase([]byte(tc.phase), "far"), name)
	}
}
