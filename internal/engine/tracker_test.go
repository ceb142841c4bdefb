package engine

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// TestEachRevisionProbesWhatItReads: a record that lacks fields for the probes of a new revision
// still serves the probes of the running one.
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
		rev.Metadata = objects.ManagedMetadata{Owner: r.Owner}
		rev.Restore(phases.Recorded{Claimed: true})
		r.Put(rev)
		r.track(tracker, false)
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
		t.Errorf("the record lacks fields that the new revision reads: %+v", result)
	}
	if result := next.probe(key, record(), &probeBudget{}); result.Unseen || result.Status != probes.False {
		t.Errorf("the next record has it: %+v", result)
	}
}

// TestRecordsWithoutFields: an object whose fields are too many, or do not fit into memory, is not
// judged, and the reason is reported. If memory was lacking, it is read again after a while. An
// object that the owner does not track yet is not requested again and again.
func TestRecordsWithoutFields(t *testing.T) {
	t.Parallel()
	now, key, kind := time.Now(), keyNamed("one"), &livestate.KindState{Synced: true}
	judges, err := probes.Compile([]corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
		Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: "true", Message: "broken"}}},
	}})
	require.NoError(t, err)
	rev := NewRevision()
	rev.SetProbes(judges)
	for lack, want := range map[objects.Lack]string{objects.LackTooLarge: "262144 bytes", objects.LackRoom: "MemoryExceeded"} {
		got := rev.probe(key, &objects.Observed{Watched: true, Lack: lack}, &probeBudget{})
		if got.Status != probes.Unknown || got.Unseen || len(got.Messages) != 1 || !strings.Contains(got.Messages[0], want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	r, tracks := New(objects.Owner{Names: apinames.Default}), false
	r.tracks = func(objects.OwnerKey, objects.Key) bool { return tracks }
	r.fieldGenerations = map[schema.GroupKind]uint32{key.GroupKind(): 1}
	record := &objects.Observed{Watched: true}
	if r.behind(kind, key, record, now) {
		t.Error("an object that is not tracked is listed again")
	}
	if tracks = true; !r.behind(kind, key, record, now) {
		t.Error("one that is tracked by now is not")
	}
	record.Lack = objects.LackRoom
	live := map[objects.Key]phases.LiveState{key: {Object: record}}
	if !r.lacksRoom(live, now) || !r.roomDue.Equal(now.Add(limits.RecordRetry)) || r.behind(kind, key, record, now) {
		t.Errorf("is read again at %s", r.roomDue)
	}
	if !r.behind(kind, key, record, r.roomDue) || r.lacksRoom(nil, now) {
		t.Error("is not read again when it is due")
	}
}

// TestRecordsOfStrays: a former stray that no revision contains does not leave a record.
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

// TestReleaseAfterRestore: a released object no longer names the owner, with any former UID.
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
