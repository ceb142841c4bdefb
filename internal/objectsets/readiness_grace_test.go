package objectsets_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// TestReadinessGraceSurvivesRestart: an object that passed its probes before its
// generation changed is in its readiness grace, also after a restart, by the recorded
// status.
func TestReadinessGraceSurvivesRestart(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	live := func(generation, observed int64, available string) *objects.Observed {
		return &objects.Observed{UID: "web", Generation: generation, Watched: true, Trimmed: fmt.Appendf(nil,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":%d},"status":{"observedGeneration":%d,"conditions":[{"type":"Available","status":%q}]}}`,
			generation, observed, available)}
	}
	condition := func(typ string) []metav1.Condition {
		return []metav1.Condition{{Type: typ, Status: metav1.ConditionTrue}}
	}
	phase := func(state corev1alpha1.PhaseState) corev1alpha1.ObjectSetStatus {
		return corev1alpha1.ObjectSetStatus{Phases: []corev1alpha1.PhaseStatus{{Name: "run", State: state}}}
	}
	for _, tc := range []struct {
		name, reason string
		recorded     corev1alpha1.ObjectSetStatus
		looks        []*objects.Observed
		// want has an entry per look, a second after the one before: the second when the
		// readiness grace of the object started; -1 for none.
		want []int
	}{
		{"scaled", "the look before showed it ready", corev1alpha1.ObjectSetStatus{},
			[]*objects.Observed{live(1, 1, "True"), live(2, 1, "True"), live(2, 2, "False"), live(2, 2, "True"), live(2, 2, "False")}, []int{-1, 1, 1, 1, 1}},
		{"new process, phase was ready", "the record has it", phase(corev1alpha1.PhaseStateReady),
			[]*objects.Observed{live(2, 1, "True"), live(2, 2, "False"), live(2, 2, "True")}, []int{0, 0, 0}},
		{"new process, set of an earlier engine", "its condition has it", corev1alpha1.ObjectSetStatus{Conditions: condition(corev1alpha1.ConditionAvailable)},
			[]*objects.Observed{live(2, 1, "True")}, []int{0}},
		{"new process, phase was not ready", "the object can be the reason", phase(corev1alpha1.PhaseStateUnready),
			[]*objects.Observed{live(2, 1, "True"), live(2, 2, "False")}, []int{-1, -1}},
		{"new process, no change", "what fails at the generation that was seen fails", phase(corev1alpha1.PhaseStateReady),
			[]*objects.Observed{live(2, 2, "False"), live(3, 2, "False")}, []int{-1, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set := &corev1alpha1.ObjectSet{Status: tc.recorded}
			set.Namespace = key.Namespace
			set.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{
				Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: key.Group, Kind: key.Kind}},
				Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Available", Status: "True"}}},
			}}
			phase := corev1alpha1.ObjectSetTemplatePhase{Name: "run", Objects: make([]corev1alpha1.ObjectSetObject, 1)}
			phase.Objects[0].Object.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`)
			set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase}
			r := objectsets.Load(set, objectsets.Stored{}, objects.Owner{Names: apinames.Default}, func(schema.GroupKind, string) (bool, bool) { return true, true })
			objectsets.Restore(r, set, true)
			owner := engine.New(objects.Owner{Names: apinames.Default, UID: "owner"})
			owner.Put(r)
			for i, obs := range tc.looks {
				live := observed{objects: map[objects.Key]*objects.Observed{key: obs}}
				owner.Snapshot(live, nil, begin.Add(time.Duration(i)*time.Second), func(*phases.State) {})
				result := r.Results[key]
				got := -1
				if !result.GraceSince.IsZero() {
					got = int(result.GraceSince.Sub(begin) / time.Second)
				}
				if got != tc.want[i] {
					t.Errorf("%s: look %d has a readiness grace since %d, want %d: %+v", tc.reason, i, got, tc.want[i], result)
				}
			}
		})
	}
}
