package progress_test

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// A deletion that no manager has looked at is not one that goes on.
func TestCulpritOfDeletion(t *testing.T) {
	t.Parallel()
	phases := revision(1, phase("crds", ready, 1, 1), phase("deploy", ready, 3, 3))
	unseen := snapshot(unpacked(), phases, deleting())
	unseen.Package.SetGeneration(2)
	const want = "no manager has looked at the deletion. Is lockstep-manager running? "
	if got := progress.Culprit(progress.Of(unseen)); !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got)
	}
	held := snapshot(unpacked(), phases, deleting("example.com/hold"))
	held.Package.SetGeneration(2)
	if got := progress.Culprit(progress.Of(held)); !strings.HasPrefix(got, "it is held by the finalizer example.com/hold") {
		t.Errorf("got %q", got)
	}
}

// Messages of conditions name objects with their group, and the lines above without.
func TestScreenConditionsWithoutGroups(t *testing.T) {
	t.Parallel()
	text := `Phase "deploy" failed: apps Deployment cert-system/cert: ` + noReplicas
	snap := snapshot(unpacked(), condition(corev1alpha1.ConditionReady, "False", "ProbeFailure", text),
		revision(1, phase("deploy", probing, 2, 3)), blocking(deployment(noReplicas)))
	got := progress.Screen(progress.ReportOf(snap), progress.ScreenOptions{Now: begin, Styles: terminal.Plain()})
	if !strings.Contains(got, "Phase \"deploy\" failed: …\n") {
		t.Errorf("got\n%s", got)
	}
}

// Where nothing is known of why a rollout is not complete, it is said how far the manager has come, and what the API server
// answered to it.
func TestCulpritOfSilence(t *testing.T) {
	t.Parallel()
	const timeout = "create ObjectSet cert: the server was unable to return a response in the time allotted"
	for want, changes := range map[string][]part{
		"the image is unpacked, and the manager has not reported on a revision yet":                   {unpacked()},
		"all phases of revision 1 are complete, and the manager has not reported that the rollout is": {unpacked(), revision(1, phase("crds", ready, 1, 1))},
		"the API server refuses or delays what the manager writes, which is tried again:\n  " + timeout: {
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
