package progress_test

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// A deletion that no manager has noticed is not in progress.
func TestCulpritOfDeletion(t *testing.T) {
	t.Parallel()
	phases := revision(1, phase("crds", ready, 1, 1), phase("deploy", ready, 3, 3))
	unseen := snapshot(unpacked(), phases, deleting())
	unseen.Package.SetGeneration(2)
	const want = "no manager has noticed the deletion. Is lockstep-manager running? "
	if got := progress.Culprit(progress.Of(unseen)); !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got)
	}
	held := snapshot(unpacked(), phases, deleting("example.com/hold"))
	held.Package.SetGeneration(2)
	if got := progress.Culprit(progress.Of(held)); !strings.HasPrefix(got, "it is held by the finalizer example.com/hold") {
		t.Errorf("got %q", got)
	}
}

// If the cause of an incomplete rollout is unknown, the text describes the manager's progress, and
// the API server's answer to it.
func TestCulpritOfSilence(t *testing.T) {
	t.Parallel()
	const timeout = "create ObjectSet cert: the server was unable to return a response in the time allotted"
	for want, changes := range map[string][]part{
		"the image is unpacked, but the manager has not reported on a revision yet":                   {unpacked()},
		"all phases of revision 1 are complete, but the manager has not reported that the rollout is": {unpacked(), revision(1, phase("crds", ready, 1, 1))},
		"the API server refuses or delays the manager's writes, which are retried:\n  " + timeout + "\n  Check the API server, its load and its webhooks: kubectl get --raw '/readyz?verbose'": {
			unpacked(), condition(corev1alpha1.ConditionReconciling, "True", corev1alpha1.ReasonApplyError, timeout)},
	} {
		s := progress.Of(snapshot(changes...))
		if got := progress.Culprit(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := progress.Unreported(s); got != !strings.Contains(want, timeout) {
			t.Errorf("%s: unreported is %t", want, got)
		}
	}
}

// Problems that a package reports have their own remedies. Further ones are details.
func TestCauseOf(t *testing.T) {
	t.Parallel()
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}
	for reason, tc := range map[string]struct {
		state        progress.State
		text, remedy string
		below        int
	}{
		"two problems": {
			progress.State{Target: target, Observed: true, Invalid: "a.yaml: wrong. Mend a.\nb.yaml: wrong. Mend b."},
			"the package cannot be installed as it is: a.yaml: wrong. Mend a.",
			"Correct it in the package and push it again, then: kubectl package retry package/web -n shop", 1,
		},
		"configuration": {
			progress.State{Target: target, Observed: true, Invalid: "Config invalid: spec.config.a: wrong. Correct spec.config of the Package.\nConfig invalid: spec.config.b: unknown key"},
			"the package cannot be installed as it is: Config invalid: spec.config.a: wrong",
			"Correct spec.config of the Package. A change of the spec is tried at once; otherwise: kubectl package retry package/web -n shop", 1,
		},
		"configuration and the package": {
			progress.State{Target: target, Observed: true, Invalid: "Config invalid: spec.config.a: wrong\nTemplate error: wrong"},
			"the package cannot be installed as it is: Config invalid: spec.config.a: wrong",
			"Correct it in the package and push it again, then: kubectl package retry package/web -n shop", 1,
		},
		"no registry": {
			progress.State{Target: target, Observed: true, PullError: "registry unreachable: no such host. Check the host in the image reference; the pull is retried automatically."},
			"the image cannot be pulled: registry unreachable: no such host",
			"Check the host in the image reference. Once that is fixed, it is retried automatically; to retry at once: kubectl package retry package/web -n shop", 0,
		},
		"no manager": {
			progress.State{Target: target}, "no manager has noticed it",
			"Is lockstep-manager running? See: kubectl -n package-operator-system get deployment,pods", 0,
		},
		"a write that is tried again": {
			progress.State{Target: target, Observed: true, Unpacked: true, Retrying: "create ObjectSet web: the server was unable to return a response in the time allotted"},
			"the API server refuses or delays the manager's writes, which are retried: create ObjectSet web: the server was unable to return a response in the time allotted",
			"Check the API server, its load and its webhooks: kubectl get --raw '/readyz?verbose'", 0,
		},
		"a rollback": {
			progress.State{Target: target, Observed: true, Unpacked: true, RolledBack: true, Stalled: "Revision 2 missed its deadline: Deployment web: no pods. Revision 3 is in charge in its place. Ask for other content."},
			"the rollout is stuck: Revision 2 missed its deadline: Deployment web: no pods. Revision 3 is in charge in its place", "Ask for other content.", 0,
		},
		"a refused downgrade, even if the version in place waits": {
			progress.State{
				Target: target, Observed: true, Unpacked: true, Blocking: []progress.Object{{Phase: "main", Message: "missing .status.conditions"}},
				Unresolved: "web: 1.0.0 is lower than 2.0.0", UnresolvedRemedy: "Allow it.",
			},
			"no version can be chosen: web: 1.0.0 is lower than 2.0.0", "Allow it.", 0,
		},
		"a pause": {
			progress.State{Target: target, Paused: "until the migration is over"},
			"it is paused, so the engine does not write it (until the migration is over)", "To resume it: kubectl package unpause package/web -n shop", 0,
		},
		"an image that is not verified": {
			progress.State{Target: target, Observed: true, NotVerified: true, PullError: "the image registry.example.com/web:v1 is not verified: it has no signature."},
			"the image registry.example.com/web:v1 is not verified: it has no signature",
			"Once that is fixed, it is retried automatically; to retry at once: kubectl package retry package/web -n shop", 0,
		},
		"no image": {
			progress.State{Target: target, PullError: "image not found"}, "the image cannot be pulled: image not found",
			"Once that is fixed, it is retried automatically; to retry at once: kubectl package retry package/web -n shop", 0,
		},
	} {
		c := progress.CauseOf(tc.state)
		text, below := c.Text, 0
		if len(c.Details) > 0 {
			text, below = text+": "+c.Details[0], len(c.Details)-1
		}
		if text != tc.text || c.Remedy != tc.remedy || below != tc.below {
			t.Errorf("%s: %q, %q, %d more", reason, text, c.Remedy, below)
		}
	}
}
