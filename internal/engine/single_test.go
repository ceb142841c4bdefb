package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// TestSingle decides about the one object of an owner without revisions, and about the objects to
// remove.
func TestSingle(t *testing.T) {
	t.Parallel()
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectTemplate", Namespace: "n", Name: "t"}, UID: "uid"}
	key, former := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}, objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "former"}
	desired, err := NewDesired(apinames.Default, key, "v1", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}})
	require.NoError(t, err)
	yes := true
	by := func(kind, name string) *objects.Observed {
		return &objects.Observed{UID: "o", ResourceVersion: "1", Watched: true, Owners: []objects.Reference{{OwnerReference: metav1.OwnerReference{
			APIVersion: "package-operator.run/v1alpha1", Kind: kind, Name: name, UID: "uid", Controller: &yes,
		}}}}
	}
	mine, theirs := by("ObjectTemplate", "t"), by("ObjectTemplate", "t")
	theirs.Owners = []objects.Reference{{OwnerReference: metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "o", UID: "other", Controller: &yes}}}
	for _, tc := range []struct {
		reason        string
		live, earlier *objects.Observed
		written       bool
		entry, step   phases.Action
		blocked       string
	}{
		{reason: "absent", entry: phases.Create},
		{reason: "its own, not known in this process", live: mine, step: phases.Verify},
		{reason: "of another controller", live: theirs, blocked: "is controlled by Other o: render another name, or delete it there"},
		{reason: "of nothing", live: &objects.Observed{UID: "o", Watched: true}, blocked: "exists already and nothing controls it: delete it, rename it, or render another name"},
		{reason: "its own by the status, and its reference was taken off", live: &objects.Observed{UID: "o", Watched: true, Wrote: true}, written: true, step: phases.Correct},
		{reason: "with a former one", live: theirs, earlier: mine, step: phases.Delete, blocked: "is controlled by"},
		{reason: "with a former one of others", live: theirs, earlier: theirs, blocked: "is controlled by"},
	} {
		r := New(owner)
		r.Put(Single(owner, desired, tc.written))
		live := map[objects.Key]phases.LiveState{key: {Synced: true, Object: tc.live}}
		if tc.earlier != nil {
			r.Put(Removal(owner, []objects.Key{former, key}))
			live[former] = phases.LiveState{Synced: true, Object: tc.earlier}
		}
		state := r.state(nil, time.Time{})
		state.Live = live
		plan := phases.Next(state)
		report := plan.Reports[len(plan.Reports)-1]
		got := phases.None
		if len(plan.Steps) > 0 {
			got = plan.Steps[0].Action
		}
		entry := phases.None
		if plan.Entry != nil {
			entry = plan.Entry.Steps[0].Action
		}
		blocked := ""
		if len(report.Blocking) > 0 {
			blocked = report.Blocking[0].Message
		}
		if got != tc.step || entry != tc.entry || len(plan.Steps) > 1 || blocked[:min(len(blocked), len(tc.blocked))] != tc.blocked || plan.Gate != nil {
			t.Errorf("%s: step %s, entry %s, blocked %q, %d steps, gate %v", tc.reason, got, entry, blocked, len(plan.Steps), plan.Gate)
		}
	}
}
