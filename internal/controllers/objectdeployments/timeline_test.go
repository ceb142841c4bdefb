package objectdeployments

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/statuses"
	"lockstep.run/lockstep/internal/engine"
)

// A change of the timeline alone is remembered, and written with the next status that differs
// otherwise. A restart continues from the written one.
func TestTimelineAloneIsNotWritten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var counted []engine.Event
	target := &Target{Engine: &engine.Engine{Count: func(e engine.Event) { counted = append(counted, e) }}}
	newReconciliation := func() *reconciliation {
		return &reconciliation{Reconciler: &Reconciler{Home: Home{Now: func() time.Time { return now }}}, state: &state{Target: target, records: map[types.UID]*record{}}}
	}
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	set.Status.Phases = []corev1alpha1.PhaseStatus{{Name: "one", State: corev1alpha1.PhaseStateProbing}}
	s := newReconciliation()
	status := set.Status.DeepCopy()
	s.followPhases(set, status)
	if len(status.Timeline) != 1 || !statuses.Same(&set.Status, status) {
		t.Fatalf("the timeline %v is a reason for a write", status.Timeline)
	}
	now = now.Add(time.Minute)
	status = set.Status.DeepCopy()
	status.Phases[0].State = corev1alpha1.PhaseStateReady
	s.followPhases(set, status)
	if statuses.Same(&set.Status, status) {
		t.Error("another state of a phase is ignored")
	}
	if times := status.Timeline[0]; times.ReadyAt.Sub(times.AppliedAt.Time) != time.Minute {
		t.Errorf("what was not written is forgotten: %v", times)
	}
	set.Status = *status
	now = now.Add(time.Hour)
	after := set.Status.DeepCopy()
	newReconciliation().followPhases(set, after)
	if got := after.Timeline[0]; !got.ReadyAt.Equal(status.Timeline[0].ReadyAt) {
		t.Errorf("after a restart the phase was ready at %v, before at %v", got.ReadyAt, status.Timeline[0].ReadyAt)
	}
	if want := []engine.Event{{Kind: engine.PhaseReady, Took: time.Minute}}; !slices.Equal(counted, want) {
		t.Errorf("counted %v, want %v", counted, want)
	}
}
