package cluster_test

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// The sets show the revision in charge. Right after a change, the status of the deployment still
// names the previous one.
func TestCurrentRevision(t *testing.T) {
	t.Parallel()
	set := func(name string, revision int64, state corev1alpha1.ObjectSetLifecycleState, waits bool) corev1alpha1.GenericObjectSet {
		s := &corev1alpha1.ObjectSet{}
		s.Name, s.Spec.Revision, s.Spec.LifecycleState = name, revision, state
		if waits {
			s.Annotations = map[string]string{corev1alpha1.AwaitingActivationAnnotation: "true"}
		}
		return s
	}
	deployment := &corev1alpha1.ObjectDeployment{}
	deployment.Status.CurrentRevision = "two"
	one := set("one", 1, corev1alpha1.ObjectSetLifecycleStateArchived, false)
	two := set("two", 2, corev1alpha1.ObjectSetLifecycleStateActive, false)
	for want, sets := range map[string][]corev1alpha1.GenericObjectSet{
		"two":   {one, two, set("waits", 3, corev1alpha1.ObjectSetLifecycleStatePaused, true)},
		"three": {one, two, set("three", 3, corev1alpha1.ObjectSetLifecycleStateActive, false)},
		"four":  {one, two, set("four", 4, corev1alpha1.ObjectSetLifecycleStatePaused, false)},
		"one":   {one},
	} {
		if got := (&cluster.Rollout{Deployment: deployment, Sets: sets}).Current(); got.GetName() != want {
			t.Errorf("%s is in charge, want %s", got.GetName(), want)
		}
	}
}
