package progress_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/test/require"
)

func TestJudgeInstall(t *testing.T) {
	t.Parallel()
	pull := snapshot(condition("Unpacked", "False", "ImagePullBackOff", "image not found"))
	stuck := snapshot(unpacked(), condition("Stalled", "True", "CollisionDetected", "taken"))
	noImage := snapshot(condition("Unpacked", "False", "ImagePullBackOff", "image not found"), condition("Stalled", "True", "ImagePullBackOff", "image not found"))
	readyNow := snapshot(unpacked(), condition("Ready", "True", "Idle", ""))
	old := snapshot(unpacked(), condition("Ready", "True", "Idle", ""), newGeneration())
	foreign := snapshot(unpacked(), condition("Available", "True", "Available", ""), condition("Progressing", "False", "Idle", ""))
	gone := snapshot()
	gone.Package = nil
	type look struct {
		at   time.Duration
		snap progress.Snapshot
	}
	tried := func(snap progress.Snapshot) progress.Snapshot {
		pkg := snap.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
		pkg.PackageStatus().LastHandledRetry = "now"
		snap.Package = pkg
		return snap
	}
	invalid := snapshot(condition("Invalid", "True", "LoadError", "a\nb"))
	withdrawn := func(progressing metav1.ConditionStatus, reason string) progress.Snapshot {
		snap := snapshot(unpacked(), condition("Available", "True", "Available", ""), condition("Progressing", progressing, reason, ""),
			condition("Resolved", "False", "UnknownPackage", "none"), condition("Ready", "False", "UnknownPackage", "none"), condition("Stalled", "True", "UnknownPackage", "none"))
		snap.Package.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: "cert.example.com"}
		return snap
	}
	for name, tc := range map[string]struct {
		retry  string
		keeps  bool
		looks  []look
		done   bool
		reason string
	}{
		"nothing yet":                 {looks: []look{{0, snapshot()}}},
		"ready":                       {looks: []look{{0, readyNow}}, done: true},
		"ready, but for the old spec": {looks: []look{{0, old}}},
		"ready by another engine":     {looks: []look{{0, foreign}}, done: true},
		"pull fails once":             {looks: []look{{0, pull}, {14 * time.Second, pull}}},
		"pull fails for good":         {looks: []look{{0, pull}, {15 * time.Second, pull}}, done: true, reason: "the image cannot be pulled:\n  image not found\n  Once that is fixed, it is retried automatically; to retry at once: kubectl package retry clusterpackage/cert"},
		"no such image":               {looks: []look{{0, noImage}, {5 * time.Second, noImage}}, done: true, reason: "the image cannot be pulled:\n  image not found\n  Once that is fixed, it is retried automatically; to retry at once: kubectl package retry clusterpackage/cert"},
		"pull fails, works, fails":    {looks: []look{{0, pull}, {10 * time.Second, snapshot(unpacked())}, {20 * time.Second, pull}}},
		"stuck for a moment":          {looks: []look{{0, stuck}, {time.Second, readyNow}}, done: true},
		"stuck":                       {looks: []look{{0, stuck}, {6 * time.Second, stuck}}, done: true, reason: "the rollout is stuck:\n  taken"},
		"invalid":                     {looks: []look{{0, snapshot(condition("Invalid", "True", "LoadError", "a\nb"))}}, done: true, reason: "the package cannot be installed as it is:\n  a\n  b\n  Correct it in the package and push it again, then: kubectl package retry clusterpackage/cert"},
		"invalid before the retry":    {retry: "now", looks: []look{{0, invalid}, {time.Minute, invalid}, {time.Minute, tried(readyNow)}}, done: true},
		"ready before the retry":      {retry: "now", looks: []look{{0, readyNow}}},
		"no image before the retry":   {retry: "now", looks: []look{{0, noImage}, {time.Minute, noImage}}},
		"invalid after the retry":     {retry: "now", looks: []look{{0, invalid}, {1, tried(invalid)}}, done: true, reason: "the package cannot be installed as it is:\n  a\n  b\n  Correct it in the package and push it again, then: kubectl package retry clusterpackage/cert"},
		"paused before the retry":     {retry: "now", looks: []look{{0, snapshot(condition("Paused", "True", "Paused", "by hand"))}}, done: true, reason: "it is paused, so the engine does not write it (by hand). To resume it: kubectl package unpause clusterpackage/cert"},
		"paused":                      {looks: []look{{0, snapshot(condition("Paused", "True", "Paused", "by hand"))}}, done: true, reason: "it is paused, so the engine does not write it (by hand). To resume it: kubectl package unpause clusterpackage/cert"},
		"not offered any longer":      {looks: []look{{0, withdrawn("False", "Idle")}, {5 * time.Second, withdrawn("False", "Idle")}}, done: true, reason: "no version can be chosen:\n  none"},
		"keeps its version":           {keeps: true, looks: []look{{0, withdrawn("True", "Progressing")}, {time.Minute, withdrawn("False", "Idle")}}, done: true},
		"deleted":                     {looks: []look{{0, gone}}, done: true, reason: "it was deleted during its rollout"},
		"being deleted":               {looks: []look{{0, snapshot(deleting())}}, done: true, reason: "it is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := &progress.Install{Retry: tc.retry, Keeps: tc.keeps}
			var v progress.Outcome
			for _, l := range tc.looks {
				if v.Done {
					t.Fatalf("done too early: %+v", v)
				}
				v = judge.Assess(progress.Of(l.snap), begin.Add(l.at))
			}
			if v.Done != tc.done || v.Reason != tc.reason || v.Failed != (tc.reason != "") {
				t.Errorf("got %+v, want done %t, reason %q", v, tc.done, tc.reason)
			}
		})
	}
}

func TestLinesOfALargePhase(t *testing.T) {
	t.Parallel()
	var lines []string
	last := progress.State{}
	for i := range int32(1001) {
		s := progress.Of(snapshot(unpacked(), revision(1, phase("all", applying, i, 1000))))
		lines = append(lines, progress.Lines(last, s)...)
		last = progress.Remember(last, s)
	}
	if len(lines) > 15 {
		t.Errorf("%d lines for a phase of 1000 objects:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// An upgrade starts with the phases of the previous revision, which are not news.
func TestLinesOfAnUpgrade(t *testing.T) {
	t.Parallel()
	old := snapshot(unpacked(), revision(1, phase("all", ready, 1, 1)))
	changed := snapshot(unpacked(), revision(1, phase("all", ready, 1, 1)), newGeneration())
	unpackedAgain := snapshot(newGeneration(), unpacked(), revision(1, phase("all", ready, 1, 1)))
	next := snapshot(newGeneration(), unpacked(), revision(2, phase("all", applying, 0, 1)))
	var lines []string
	last := progress.Of(old)
	for _, snap := range []progress.Snapshot{changed, unpackedAgain, next} {
		s := progress.Of(snap)
		lines = append(lines, progress.Lines(last, s)...)
		last = progress.Remember(last, s)
	}
	got := strings.Join(lines, "\n")
	if want := "revision 2: 1 phase, 1 object\nphase all: applying, 0/1"; !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s\nwant one line about the image and\n%s", got, want)
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 440 * time.Millisecond: "0.4s", 59940 * time.Millisecond: "59.9s",
		59960 * time.Millisecond: "1m00s", 65 * time.Second: "1m05s",
		time.Hour - 100*time.Millisecond: "1h00m", 2*time.Hour + 3*time.Minute + 10*time.Second: "2h03m",
	} {
		require.Equal(t, want, progress.Elapsed(d), fmt.Sprintf("Elapsed(%s)", d))
	}
}

// The reason why an image is not trusted is reported once, without a word about a pull that was
// never tried.
func TestNotVerified(t *testing.T) {
	t.Parallel()
	const why = "the image example.com/web:v1 is not verified: the registry has no signature of it"
	s := progress.Of(snapshot(condition("Unpacked", "False", "ImageNotVerified", why), condition("Stalled", "True", "ImageNotVerified", why)))
	if s.Summary() != summary.NotVerified || s.Summary().Words() != "image not verified" || !strings.HasPrefix(progress.Culprit(s), why+". Once that is fixed") {
		t.Errorf("%s: %s", s.Summary().Words(), progress.Culprit(s))
	}
	if got := progress.Lines(progress.State{}, s); strings.Contains(strings.Join(got, "\n"), "cannot pull") {
		t.Errorf("got %q", got)
	}
}

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
		require.Equal(t, want, progress.Culprit(s))
		require.Equal(t, !strings.Contains(want, timeout), progress.Unreported(s), fmt.Sprintf("%s: unreported", want))
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
		"two problems": {progress.State{Target: target, Observed: true, Invalid: "a.yaml: wrong. Mend a.\nb.yaml: wrong. Mend b."},
			"the package cannot be installed as it is: a.yaml: wrong. Mend a.",
			"Correct it in the package and push it again, then: kubectl package retry package/web -n shop", 1},
		"configuration": {progress.State{Target: target, Observed: true, Invalid: "Config invalid: spec.config.a: wrong. Correct spec.config of the Package.\nConfig invalid: spec.config.b: unknown key"},
			"the package cannot be installed as it is: Config invalid: spec.config.a: wrong",
			"Correct spec.config of the Package. A change of the spec is tried at once; otherwise: kubectl package retry package/web -n shop", 1},
		"configuration of a component": {progress.State{Target: target, Observed: true, Invalid: "Config invalid [backend]: spec.config.a: wrong. Correct spec.config of the Package."},
			"the package cannot be installed as it is: Config invalid [backend]: spec.config.a: wrong",
			"Correct spec.config of the Package. A change of the spec is tried at once; otherwise: kubectl package retry package/web -n shop", 0},
		"a component that does not exist": {progress.State{Target: target, Observed: true, Invalid: `Component not found [back]: component "back". The package has: backend.`},
			`the package cannot be installed as it is: Component not found [back]: component "back"`,
			"The package has: backend. A change of the spec is tried at once; otherwise: kubectl package retry package/web -n shop", 0},
		"a label of an object of a component": {progress.State{Target: target, Observed: true, Invalid: "Labels invalid in a.yaml idx 0 [backend]: wrong. Correct the label."},
			"the package cannot be installed as it is: Labels invalid in a.yaml idx 0 [backend]: wrong. Correct the label.",
			"Correct it in the package and push it again, then: kubectl package retry package/web -n shop", 0},
		"configuration and the package": {progress.State{Target: target, Observed: true, Invalid: "Config invalid: spec.config.a: wrong\nTemplate error: wrong"},
			"the package cannot be installed as it is: Config invalid: spec.config.a: wrong",
			"Correct it in the package and push it again, then: kubectl package retry package/web -n shop", 1},
		"no registry": {progress.State{Target: target, Observed: true, PullError: "registry unreachable: no such host. Check the host in the image reference."},
			"the image cannot be pulled: registry unreachable: no such host",
			"Check the host in the image reference. Once that is fixed, it is retried automatically; to retry at once: kubectl package retry package/web -n shop", 0},
		"no manager": {progress.State{Target: target}, "no manager has noticed it",
			"Is lockstep-manager running? See: kubectl -n package-operator-system get deployment,pods", 0},
		"a write that is tried again": {progress.State{Target: target, Observed: true, Unpacked: true, Retrying: "create ObjectSet web: the server was unable to return a response in the time allotted"},
			"the API server refuses or delays the manager's writes, which are retried: create ObjectSet web: the server was unable to return a response in the time allotted",
			"Check the API server, its load and its webhooks: kubectl get --raw '/readyz?verbose'", 0},
		"a rollback": {progress.State{Target: target, Observed: true, Unpacked: true, RolledBack: true, Stalled: "Revision 2 missed its deadline: Deployment web: no pods. Revision 3 is in charge in its place. Ask for other content."},
			"the rollout is stuck: Revision 2 missed its deadline: Deployment web: no pods. Revision 3 is in charge in its place", "Ask for other content.", 0},
		"a refused downgrade, even if the version in place waits": {progress.State{
			Target: target, Observed: true, Unpacked: true, Blocking: []progress.Object{{Phase: "main", Message: "missing .status.conditions"}},
			Unresolved: "web: 1.0.0 is lower than 2.0.0", UnresolvedRemedy: "Allow it.",
		},
			"no version can be chosen: web: 1.0.0 is lower than 2.0.0", "Allow it.", 0},
		"a pause": {progress.State{Target: target, Paused: "until the migration is over"}, "it is paused, so the engine does not write it (until the migration is over)",
			"To resume it: kubectl package unpause package/web -n shop", 0},
		"an image that is not verified": {progress.State{Target: target, Observed: true, NotVerified: true, PullError: "the image registry.example.com/web:v1 is not verified: it has no signature."},
			"the image registry.example.com/web:v1 is not verified: it has no signature",
			"Once that is fixed, it is retried automatically; to retry at once: kubectl package retry package/web -n shop", 0},
		"no image": {progress.State{Target: target, PullError: "image not found"}, "the image cannot be pulled: image not found",
			"Once that is fixed, it is retried automatically; to retry at once: kubectl package retry package/web -n shop", 0},
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

// Every command names an unusable target first, along with the remedy.
func TestTargetNotConnected(t *testing.T) {
	t.Parallel()
	remote := func(s *progress.Snapshot) {
		s.Package.PackageSpec().TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}}
	}
	away := func(reason, message string) part {
		return condition(corev1alpha1.ConditionTargetConnected, "False", reason, message)
	}
	blocked := []part{unpacked(), revision(1, phase("deploy", probing, 2, 3)), blocking(deployment(noReplicas))}
	for name, tc := range map[string]struct {
		parts []part
		want  string
	}{
		"missing": {
			parts: []part{away(corev1alpha1.ReasonKubeconfigMissing, "Secret system/edge does not exist: create it.")},
			want: "its target is not connected:\n  Secret system/edge does not exist: create it.\n" +
				"  Create it: kubectl -n package-operator-system create secret generic edge --from-file=value=KUBECONFIG",
		},
		"refused": {
			parts: []part{away(corev1alpha1.ReasonKubeconfigRefused, "user.exec would run a program.")},
			want:  "its target is not connected:\n  user.exec would run a program.\n  Change the kubeconfig in Secret package-operator-system/edge, key value; it is retried at once",
		},
		"away, with an earlier state": {
			parts: append([]part{away(corev1alpha1.ReasonTargetUnreachable, "No answer. It is tried again after 8s.")}, blocked...),
			want: "its target is not connected:\n  No answer. It is tried again after 8s.\n" +
				"  Check whether the target runs, and whether the manager reaches the address in Secret package-operator-system/edge, key value; it is retried automatically",
		},
		"replaced": {
			parts: []part{away(corev1alpha1.ReasonOtherCluster, "Another cluster.")},
			want: "its target is not connected:\n  Another cluster.\n  Name the cluster that has the objects in Secret package-operator-system/edge, key value. " +
				"If it was recreated, install the package in it: kubectl annotate clusterobjectdeployment/cert package-operator.run/target-cluster-",
		},
		"deleted": {
			parts: append([]part{away(corev1alpha1.ReasonTargetUnreachable, "No answer."), deleting()}, blocked...),
			want: "its target is not connected, so its objects there cannot be removed:\n  No answer.\n  The deletion continues automatically once the target is connected. " +
				"To delete the package at once, and leave its objects in the target: kubectl annotate clusterpackage/cert package-operator.run/abandon-target=true",
		},
		"deleted without rights": {
			parts: []part{
				condition(corev1alpha1.ConditionStalled, "True", corev1alpha1.ReasonApplyError, "may not list configmaps"), deleting(),
				revision(1, phase("deploy", corev1alpha1.PhaseStateTearingDown, 0, 3)),
			},
			want: "its objects cannot be removed:\n  may not list configmaps",
		},
		"nothing may be read there": {parts: []part{condition(corev1alpha1.ConditionStalled, "True", corev1alpha1.ReasonForbidden, "may not list")}, want: "the rollout is stuck:\n  may not list"},
		"being connected":           {parts: []part{away(corev1alpha1.ReasonTargetConnecting, "In a moment.")}, want: "the manager has not pulled the image registry.example.com/cert:v1.2.0 yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshot(append([]part{remote}, tc.parts...)...)
			require.Equal(t, tc.want, progress.Culprit(progress.Of(snap)))
			report := progress.ReportOf(snap)
			screen := progress.Screen(report, progress.ScreenOptions{Now: begin, Styles: terminal.Plain()})
			if !strings.Contains(tc.want, "not connected") {
				return
			}
			for line := range strings.Lines(tc.want) {
				if _, last, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  "); last != "" && !strings.Contains(screen, last) {
					t.Errorf("status lacks %q:\n%s", last, screen)
				}
			}
			if !strings.HasPrefix(name, "deleted") && report.Summary != summary.Target {
				t.Errorf("it is %s", report.Summary)
			}
		})
	}
}

// An installation ends if only a user can repair the target. Otherwise it waits. The reason is
// printed once.
func TestInstallIntoTarget(t *testing.T) {
	t.Parallel()
	stalls := snapshot(condition(corev1alpha1.ConditionTargetConnected, "False", corev1alpha1.ReasonTargetUnauthorized, "Renew them."),
		condition(corev1alpha1.ConditionStalled, "True", corev1alpha1.ReasonTargetUnauthorized, "Renew them."))
	var j progress.Install
	j.Assess(progress.Of(stalls), begin)
	if v := j.Assess(progress.Of(stalls), begin.Add(time.Minute)); !v.Failed || !strings.HasPrefix(v.Reason, "its target is not connected:\n  Renew them.") {
		t.Errorf("got %+v", v)
	}
	var lines []string
	last := progress.State{}
	for _, message := range []string{"No answer. It is tried again after 1s.", "No answer. It is tried again after 2s.", ""} {
		s := progress.Of(snapshot(condition(corev1alpha1.ConditionTargetConnected, "False", corev1alpha1.ReasonTargetUnreachable, message)))
		if message == "" {
			s = progress.Of(snapshot(condition(corev1alpha1.ConditionTargetConnected, "True", corev1alpha1.ReasonTargetConnected, message)))
		}
		if v := new(progress.Install).Assess(s, begin.Add(time.Hour)); v.Done {
			t.Errorf("it ends with %+v", v)
		}
		lines = append(lines, progress.Lines(last, s)...)
		last = progress.Remember(last, s)
	}
	require.Equal(t, "target not connected: No answer. It is tried again after 1s.\ntarget connected", strings.Join(lines, "\n"))
}
