package cluster_test

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/test/clustertest"
)

// A revision with the template of an earlier one is an undo.
func TestChangeCause(t *testing.T) {
	t.Parallel()
	set := func(number int64, hash string) corev1alpha1.GenericObjectSet {
		return clustertest.Revision(number, map[string]string{corev1alpha1.HashAnnotation: hash, corev1alpha1.ChangeCauseAnnotation: "Changed."}, clustertest.PhaseOf("deploy"))
	}
	sets := []corev1alpha1.GenericObjectSet{set(1, "a"), set(2, "b"), set(3, "a"), set(4, ""), set(5, ""), set(6, "a")}
	for i, want := range []string{"Changed.", "Changed.", "Back to revision 1.", "Changed.", "Changed.", "Back to revision 3."} {
		if got := cluster.ChangeCause(sets[:i], sets[i]); got != want {
			t.Errorf("revision %d: %s", i+1, got)
		}
	}
	// A rollback activates the set of the revision that it goes back to.
	sets[5].GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] = "5"
	if got := cluster.ChangeCause(sets[:5], sets[5]); got != "Rolled back from revision 5." {
		t.Error(got)
	}
}
