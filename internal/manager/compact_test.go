package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/require"
)

func newSet(archived bool) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
	}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
		Name: "deploy", Slices: []string{"s"},
		Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte("{}")}}},
	}}
	set.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{}}
	conditions.Set(&set.Status.Conditions, 1, corev1alpha1.ConditionArchived, archived, "X", "")
	return set
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for name, archived := range map[string]bool{"active": false, "archived": true} {
		got, err := compact(newSet(archived))
		require.NoError(t, err)
		set := got.(*corev1alpha1.ObjectSet)
		if set.ManagedFields != nil || !cmp.Equal(set.Annotations, map[string]string{"a": "b"}) {
			t.Errorf("%s: %d managed fields, annotations %v", name, len(set.ManagedFields), set.Annotations)
		}
		want := newSet(archived).Spec
		if archived {
			want.Phases[0].Objects, want.AvailabilityProbes = nil, nil
		}
		require.Equal(t, want, set.Spec, name)
	}
}

func TestCompactPassesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	tombstone := cache.DeletedFinalStateUnknown{Key: "a"}
	if got, err := compact(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("got %v, %v", got, err)
	}
}
