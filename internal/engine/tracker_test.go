package engine

import (
	"bytes"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// TestEachRevisionProbesWhatItReads: a record that lacks what the probes of a new
// revision read is as good as before for those of the one that runs.
func TestEachRevisionProbesWhatItReads(t *testing.T) {
	t.Parallel()
	tracker := tracking.New(apinames.Default)
	r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "a", Name: "shop"}, UID: "owner"})
	r.Claims = claims.NewTable(func(objects.Owner) {})
	add := func(uid types.UID, number int64, rule string) *Revision {
		t.Helper()
		judges, err := probes.Compile([]corev1alpha1.ObjectSetProbe{{
			Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
			Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: rule, Message: "broken"}}},
		}})
		require.NoError(t, err)
		one, err := NewDesired(apinames.Default, keyNamed("one"), "v1", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}})
		require.NoError(t, err)
		rev := NewRevision()
		rev.Identify(string(uid), uid, "")
		rev.Number, rev.Phases = number, []phases.Phase{{Name: "one", Objects: []*objects.Desired{one}}}
		rev.SetProbes(judges)
		r.Put(rev)
		r.track(tracker, nil)
		return rev
	}
	key := keyNamed("one")
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "one", "namespace": "a"}, "data": map[string]any{"ready": "true", "broken": "yes"},
	}}
	record := func() *objects.Observed {
		obs := tracker.Observe(key, live)
		obs.Watched = true
		return obs
	}

	old := add("old", 1, "self.data.ready == 'true'")
	before := record()
	next := add("next", 2, "!has(self.data.broken)")
	if result := old.probe(key, before, &probeBudget{}); result.Status != probes.True {
		t.Errorf("the revision that runs judges by the same record as before: %+v", result)
	}
	if result := next.probe(key, before, &probeBudget{}); !result.Unseen || result.Status != probes.Unknown {
		t.Errorf("the record lacks what the new revision reads: %+v", result)
	}
	if result := next.probe(key, record(), &probeBudget{}); result.Unseen || result.Status != probes.False {
		t.Errorf("the next record has it: %+v", result)
	}
}

// TestRecordsOfStrays: what was a stray once, and a revision contains no more, leaves no record.
func TestRecordsOfStrays(t *testing.T) {
	t.Parallel()
	r := New(objects.Owner{Names: apinames.Default})
	key := func(i int) objects.Key { return objects.Key{Kind: "ConfigMap", Name: strconv.Itoa(i)} }
	for i := range 10_000 {
		r.applied.At(key(i))
		r.prune([]objects.Key{key(0)})
	}
	if got := len(r.applied); got > 100 || r.applied[key(0)] == nil {
		t.Errorf("%d records of one stray", got)
	}
}

// TestReleaseAfterRestore: an object that is released names the owner no more, whatever UID
// that had.
func TestReleaseAfterRestore(t *testing.T) {
	t.Parallel()
	for _, cluster := range []types.UID{"", "home"} {
		owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "app"}, UID: "former", Cluster: cluster}
		meta := map[string]any{}
		owner.Put(meta)
		owner.UID = "u"
		patch, err := releasePatch(&unstructured.Unstructured{Object: map[string]any{"metadata": meta}}, New(owner))
		if err != nil || !bytes.Contains(patch, []byte("owner")) {
			t.Errorf("cluster %q: %s, %v", cluster, patch, err)
		}
	}
}
