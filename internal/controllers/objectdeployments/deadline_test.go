package objectdeployments

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// TestLate: a revision gives way only after it could progress for its whole deadline: not right
// after a restart, a pause or an outage of its target, and not while it is available.
func TestLate(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	now := begin
	dep, set := &corev1alpha1.ObjectDeployment{}, &corev1alpha1.ObjectSet{}
	dep.Spec.OnDeadline, dep.Spec.ProgressDeadlineSeconds = corev1alpha1.DeadlineRollback, ptr.To[int32](60)
	set.Spec.Revision, set.Spec.LifecycleState = 2, corev1alpha1.ObjectSetLifecycleStateActive
	set.CreationTimestamp = metav1.NewTime(begin.Add(-time.Hour))
	s := &reconciliation{Reconciler: &Reconciler{Home: Home{Now: func() time.Time { return now }}}, deployment: dep, current: set}
	restart := func() {
		s.state = &state{rollout: engine.New(objects.Owner{Names: apinames.Default, UID: ""})}
	}
	is := func(conds *[]metav1.Condition, typ, reason string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conds, metav1.Condition{Type: typ, Status: status, Reason: reason})
	}
	for _, step := range []struct {
		what   string
		passes time.Duration
		change func()
		want   bool
	}{
		{"an hour after its creation the manager starts", 0, restart, false},
		{"it has a part of its deadline", 59 * time.Second, nil, false},
		{"it has all of it", time.Second, nil, true},
		{"the deployment is paused", 0, func() { dep.Spec.Paused = true }, false},
		{"and continues after an hour", time.Hour, func() { dep.Spec.Paused = false }, false},
		{"all of the deadline has passed again", time.Minute, nil, true},
		{"a user pauses the set", 0, func() { set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused }, false},
		{"and resumes it after an hour", time.Hour, func() { set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateActive }, false},
		{"all of the deadline has passed once more", time.Minute, nil, true},
		{"it is available, and waits for its success delay", 0, func() { is(&set.Status.Conditions, corev1alpha1.ConditionAvailable, "A", "True") }, false},
		{"it is not available any more", 0, func() { is(&set.Status.Conditions, corev1alpha1.ConditionAvailable, "A", "False") }, true},
		{"the manager starts again without having reported a status", 0, restart, false},
		{"one that it reported before gives way at once", 0, func() {
			dep.Status.Revision = 2
			is(&dep.Status.Conditions, corev1alpha1.ConditionProgressing, corev1alpha1.ReasonProgressDeadlineExceeded, "False")
			restart()
		}, true},
		{"what it reported is of another revision", 0, func() { dep.Status.Revision = 1 }, false},
		{"all of its deadline has passed for the fourth time", time.Minute, nil, true},
		{"it must not write when another revision replaces it", 0, func() {
			_ = s.attend([]func(context.Context) error{func(context.Context) error { return leadership.ErrNotLeading }})(t.Context())
		}, false},
		{"which has ended", 59 * time.Second, nil, false},
		{"all of its deadline has passed since", time.Second, nil, true},
	} {
		now = now.Add(step.passes)
		if step.change != nil {
			step.change()
		}
		if got := s.late(); got != step.want {
			t.Errorf("%s: late = %t, want %t", step.what, got, step.want)
		}
	}
}
