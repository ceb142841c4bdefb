package progress_test

import (
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

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
			if got := progress.Culprit(progress.Of(snap)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
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
			if !strings.HasPrefix(name, "deleted") && report.Summary != progress.SummaryTarget {
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
	if got := strings.Join(lines, "\n"); got != "target not connected: No answer. It is tried again after 1s.\ntarget connected" {
		t.Errorf("got\n%s", got)
	}
}
