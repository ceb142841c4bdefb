package tracking

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/probes"
)

var (
	configMaps = schema.GroupKind{Kind: "ConfigMap"}
	all        = map[schema.GroupKind]probes.Needs{configMaps: {Whole: true}}
)

func configMapOf(namespace string) objects.Key {
	return objects.Key{Kind: configMaps.Kind, Namespace: namespace, Name: "one"}
}

func liveOf(key objects.Key, size int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": key.Kind, "metadata": map[string]any{"namespace": key.Namespace, "name": key.Name},
		"data": map[string]any{"a": strings.Repeat("a", size)},
	}}
}

// tracking returns a tracker that tracks an object of each namespace.
func tracking(namespaces ...string) *Tracker {
	tracker := New(apinames.Default)
	tracker.Wake = func(objects.OwnerKey) {}
	for _, namespace := range namespaces {
		tracker.Track(objects.OwnerKey{Namespace: namespace, Name: "shop"}, &objects.Desired{Key: configMapOf(namespace)}, objects.ManagedMetadata{}, objects.Digest{})
	}
	return tracker
}

// TestFieldsOfOtherNamespaces: fields that the probes of a namespace read are kept for its own
// objects, and fields that the cluster's probes read for all objects.
func TestFieldsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	tracker := tracking("evil", "victim")
	live := liveOf(configMapOf("victim"), 100<<10)
	evil := objects.OwnerKey{Namespace: "evil", Name: "shop"}
	since := tracker.Probe(evil, "evil", all)[configMaps]
	if got := tracker.Observe(configMapOf("victim"), live); len(got.Trimmed) != 0 {
		t.Errorf("%d bytes of another namespace's object are kept", len(got.Trimmed))
	}
	if got := tracker.Observe(configMapOf("evil"), liveOf(configMapOf("evil"), 10)); len(got.Trimmed) == 0 || got.FieldsGeneration < since {
		t.Errorf("a record of generation %d, of %d, lacks its fields", got.FieldsGeneration, since)
	}
	platform := objects.OwnerKey{Name: "platform"}
	since = tracker.Probe(platform, "", all)[configMaps]
	if got := tracker.Observe(configMapOf("victim"), live); len(got.Trimmed) < 100<<10 || got.FieldsGeneration < since {
		t.Errorf("the cluster's owner gets %d bytes of generation %d, of %d", len(got.Trimmed), got.FieldsGeneration, since)
	}
	// A field that joins later is lacked by records of before, whichever of both sets it joins.
	before := tracker.Observe(configMapOf("victim"), live).FieldsGeneration
	victim := objects.OwnerKey{Namespace: "victim", Name: "shop"}
	since = tracker.Probe(victim, "victim", all)[configMaps]
	if after := tracker.Observe(configMapOf("victim"), live).FieldsGeneration; before >= since || after < since {
		t.Errorf("a field of generation %d, and records of %d before and %d after", since, before, after)
	}
	for _, owner := range []objects.OwnerKey{evil, platform, victim} {
		tracker.Disown(owner)
	}
	if len(tracker.kinds) > 0 {
		t.Errorf("fields without a reader: %v", tracker.kinds)
	}
}

// TestUntrackedKeepMetadata: for an object that no owner tracks, only metadata is kept, whichever
// client sets our label on it.
func TestUntrackedKeepMetadata(t *testing.T) {
	t.Parallel()
	tracker := tracking("evil")
	tracker.Probe(objects.OwnerKey{Namespace: "evil", Name: "shop"}, "evil", all)
	key := configMapOf("evil")
	key.Name = "other"
	if got := tracker.Observe(key, liveOf(key, 10)); len(got.Trimmed) != 0 || got.Lack != objects.LackNothing {
		t.Errorf("%d bytes are kept", len(got.Trimmed))
	}
}

// TestRoomForFields: fields that probes read of large objects are counted until they are no longer
// read or kept, and are not kept if there is no room.
func TestRoomForFields(t *testing.T) {
	t.Parallel()
	key := configMapOf("evil")
	tracker, held, room := tracking("evil"), map[objects.Key]int64{}, int64(100<<10)
	tracker.Keep = func(key objects.Key, bytes int64) bool {
		if bytes > room {
			return false
		}
		if held[key] = bytes; bytes == 0 {
			delete(held, key)
		}
		return true
	}
	owner := objects.OwnerKey{Namespace: "evil", Name: "shop"}
	tracker.Probe(owner, "evil", all)
	for _, tc := range []struct {
		reason string
		size   int
		want   objects.Lack
		holds  bool
	}{
		{"small", 100, objects.LackNothing, false},
		{"large", 50 << 10, objects.LackNothing, true},
		{"beyond the room of its namespace", 150 << 10, objects.LackRoom, false},
		{"large again", 60 << 10, objects.LackNothing, true},
		{"beyond the limit", limits.RecordBytes, objects.LackTooLarge, false},
	} {
		got := tracker.Observe(key, liveOf(key, tc.size))
		if got.Lack != tc.want || (len(got.Trimmed) > 0) != (tc.want == objects.LackNothing) || held[key] > 0 != tc.holds {
			t.Errorf("%s: lacks %d, %d bytes are kept and %d held", tc.reason, got.Lack, len(got.Trimmed), held[key])
		}
	}
	for reason, end := range map[string]func(){
		"it left the watch":          func() { tracker.Changed(objects.Change{Key: key}) },
		"it was found to be deleted": func() { tracker.Gone(key) },
		"it is not tracked":          func() { tracker.Untrack(owner, key); tracker.Observe(key, liveOf(key, 50<<10)) },
		"its owner was deleted":      func() { tracker.Disown(owner) },
		"its fields are not read":    func() { tracker.Probe(owner, "evil", nil); tracker.Observe(key, liveOf(key, 50<<10)) },
		"it is another one by now":   func() { tracker.Observe(key, liveOf(key, 10)) },
	} {
		tracker.Track(owner, &objects.Desired{Key: key}, objects.ManagedMetadata{}, objects.Digest{})
		tracker.Probe(owner, "evil", all)
		tracker.Observe(key, liveOf(key, 50<<10))
		if held[key] == 0 {
			t.Fatal("no memory is held")
		}
		if end(); len(held) > 0 {
			t.Errorf("%s, and %v is held", reason, held)
		}
	}
}
