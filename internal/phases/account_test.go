package phases_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

// A removal that was forbidden is tried again later; meanwhile the object may be released,
// which needs no right, and one that is gone is looked for at once.
func TestForbiddenRemoval(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "owner"}
	live := &objects.Observed{UID: "a", ResourceVersion: "1", Watched: true, Owners: apinames.Default.References([]metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}, nil)}
	other := *live
	other.UID = "b"
	for _, tc := range []struct {
		name   string
		object *objects.Observed
		keep   bool
		reason string
		after  time.Duration
		want   phases.Action
	}{
		{"before the next try", live, false, "Forbidden", 0, phases.Wait},
		{"the next try", live, false, "Forbidden", time.Minute, phases.Delete},
		{"it is to be released", live, true, "Forbidden", 0, phases.Release},
		{"its release failed", live, true, "", 0, phases.Wait},
		{"it is gone", nil, false, "Forbidden", 0, phases.Confirm},
		{"another one has its name", &other, false, "Forbidden", 0, phases.Delete},
	} {
		got := phases.Decide(phases.DecisionInput{
			Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Owner: owner, Confirm: true, Keep: tc.keep, Now: now.Add(tc.after),
			Live:    phases.LiveState{Synced: true, Object: tc.object},
			Applied: phases.Applied{Failure: &phases.Failure{UID: live.UID, Reason: tc.reason, Message: "refused", Until: now.Add(time.Minute)}},
		})
		if got.Action != tc.want || got.Action == phases.Wait && got.Reason != tc.reason {
			t.Errorf("%s: %+v, want %v", tc.name, got, tc.want)
		}
	}
}
