package summary_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
)

func condition(typ, status, reason string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: 2}
}

// The word of a package and its cause, and the command line shows the same word.
func TestOf(t *testing.T) {
	t.Parallel()
	ready, unready := condition("Ready", "True", "Available"), condition("Ready", "False", "ProbeFailure")
	for _, tc := range []struct {
		reason     string
		conditions []metav1.Condition
		change     func(*corev1alpha1.Package)
		want       summary.Summary
		cause      string
	}{
		{"no condition is reported", nil, nil, summary.Pending, ""},
		{"of an earlier spec", []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 1}}, nil, summary.Pending, ""},
		{"ready", []metav1.Condition{ready}, nil, summary.Available, ""},
		{"as Package Operator reports it", []metav1.Condition{
			condition("Available", "True", "X"), condition("Progressing", "False", "Idle"), condition("Unpacked", "True", "X"),
		}, nil, summary.Available, ""},
		{"being deleted", []metav1.Condition{ready}, func(p *corev1alpha1.Package) { p.DeletionTimestamp = &metav1.Time{} }, summary.Deleting, ""},
		{"its deletion is held", []metav1.Condition{condition("DeletionHeld", "True", "Required")}, func(p *corev1alpha1.Package) { p.DeletionTimestamp = &metav1.Time{} }, summary.Deleting, "DeletionHeld"},
		{"paused, with any other condition", []metav1.Condition{ready, condition("Paused", "True", "Paused")}, nil, summary.Paused, ""},
		{"target away", []metav1.Condition{ready, condition("TargetConnected", "False", "Unreachable")}, nil, summary.Target, "TargetConnected"},
		{"no attempt has ended", []metav1.Condition{ready, condition("TargetConnected", "False", "Connecting")}, nil, summary.Available, ""},
		{"invalid", []metav1.Condition{unready, condition("Invalid", "True", "ConfigInvalid"), condition("Unpacked", "False", "X")}, nil, summary.Invalid, "Invalid"},
		{"no version", []metav1.Condition{unready, condition("Resolved", "False", "UnknownPackage")}, func(p *corev1alpha1.Package) { p.Spec.PackageRef = &corev1alpha1.PackageReference{} }, summary.Unresolved, "Resolved"},
		{"not verified", []metav1.Condition{unready, condition("Unpacked", "False", "ImageNotVerified")}, nil, summary.NotVerified, "Unpacked"},
		{"not pulled", []metav1.Condition{unready, condition("Unpacked", "False", "ImagePullBackOff")}, nil, summary.ImagePullError, "Unpacked"},
		{"waits for dependencies", []metav1.Condition{unready, condition("DependenciesReady", "False", "WaitingForDependencies")}, nil, summary.Waiting, "DependenciesReady"},
		{"dependencies that cannot be", []metav1.Condition{unready, condition("DependenciesReady", "False", "DependencyCycle")}, nil, summary.Unsatisfied, "DependenciesReady"},
		{"stalled", []metav1.Condition{unready, condition("Stalled", "True", "CollisionDetected")}, nil, summary.Stalled, "Stalled"},
		{"awaits its activation", []metav1.Condition{unready, condition("AwaitingActivation", "True", "AwaitingActivation")}, nil, summary.Awaiting, "AwaitingActivation"},
		{"awaits its activation, and the one in charge does not work", []metav1.Condition{unready, condition("AwaitingActivation", "True", "AwaitingActivation"), condition("Available", "False", "ProbeFailure")}, func(p *corev1alpha1.Package) { p.Status.CurrentRevision = "shop-1" }, summary.Unavailable, "Available"},
		{"stalled, even if a revision awaits its activation", []metav1.Condition{unready, condition("AwaitingActivation", "True", "AwaitingActivation"), condition("Stalled", "True", "X")}, nil, summary.Stalled, "Stalled"},
		{"was rolled out", []metav1.Condition{unready, condition("Progressing", "False", "Idle"), condition("Available", "False", "ProbeFailure")}, nil, summary.Unavailable, "Available"},
		{"on its way", []metav1.Condition{unready, condition("Progressing", "True", "Progressing")}, nil, summary.Progressing, "Ready"},
	} {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team", Generation: 2}}
		pkg.Status.Conditions = tc.conditions
		if tc.change != nil {
			tc.change(pkg)
		}
		got := summary.Of(pkg)
		if cause := summary.Cause(pkg, got).Type; got != tc.want || cause != tc.cause {
			t.Errorf("%s: %s by %q, want %s by %q", tc.reason, got, cause, tc.want, tc.cause)
		}
		snapshot := progress.Snapshot{Target: progress.TargetOf(pkg), Package: pkg}
		if report := progress.ReportOf(snapshot).Summary; report != got || progress.Of(snapshot).Summary() != got {
			t.Errorf("%s: the command line has %s, the metrics %s", tc.reason, report, got)
		}
	}
}
