package planning

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// The summary is first, packages without changes add nothing else, and the exit code shows the
// result.
func TestPlans(t *testing.T) {
	t.Parallel()
	all := &plans{}
	add := func(outcome dryrun.Outcome, err error) {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.ToLower(string(outcome))}}
		all.add(pkg, &dryrun.Plan{Kind: "Package", Namespace: "shop", Name: pkg.Name, Outcome: outcome}, err)
	}
	for _, step := range []struct {
		outcome dryrun.Outcome
		err     error
		code    int
		text    string
	}{
		{dryrun.OutcomeNothing, nil, 0, "1 package planned: 1 nothing to do, 0 with changes, 0 refused, 0 failed\n"},
		{dryrun.OutcomeChanges, nil, 2, "2 packages planned: 1 nothing to do, 1 with changes, 0 refused, 0 failed\n\npackage shop/changes"},
		{"web", errors.New("no\x1b image"), 1, "\n✗ package shop/web\n    no\\u001b image\n\npackage shop/changes"},
		{dryrun.OutcomeRefused, nil, 1, "\npackage shop/refused"},
	} {
		add(step.outcome, step.err)
		var code command.ExitCode
		if err := all.result(); (err != nil) != (step.code != 0) || err != nil && (!errors.As(err, &code) || int(code) != step.code) {
			t.Errorf("after %s: %v, want %d", step.outcome, err, step.code)
		}
		if text := all.text(terminal.Plain()); !strings.Contains(text, step.text) || strings.Contains(text, "shop/nothing") {
			t.Errorf("after %s:\n%s", step.outcome, text)
		}
	}
}
