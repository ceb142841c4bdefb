package tracking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// TestFieldsGeneration: a record has the fields that an owner's probes read if its number is at
// least the owner's. No list is requested if none is needed.
func TestFieldsGeneration(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Kind: "ConfigMap"}
	needs := func(paths ...string) *probes.Needs {
		n := &probes.Needs{}
		for _, p := range paths {
			n.Paths = append(n.Paths, []string{"data", p})
		}
		return n
	}
	first, second := objects.OwnerKey{Name: "first"}, objects.OwnerKey{Name: "second"}
	type step struct {
		reason string
		owner  objects.OwnerKey
		needs  *probes.Needs // nil: the owner no longer probes the kind
		// lacks reports whether the record of the step before lacks a field that is read now.
		lacks bool
	}
	for name, steps := range map[string][]step{
		"one owner": {
			{"no record was kept", first, needs("a"), true},
			{"the same again", first, needs("a"), false},
			{"less", first, needs(), false},
			{"the field that was left out meanwhile", first, needs("a"), true},
			{"more", first, needs("a", "b"), true},
			{"nothing", first, nil, false},
			{"all again", first, needs("a"), true},
		},
		"two owners": {
			{"no record was kept", first, needs("a"), true},
			{"another reads more", second, needs("a", "b"), true},
			{"what the other one reads", first, needs("b"), false},
			{"the other one is dropped", second, nil, false},
			{"the same as before", first, needs("b"), false},
			{"what only the other one read", first, needs("a", "b"), true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracker := New(apinames.Default)
			live := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "1", "b": "2"}}}
			key := objects.Key{Kind: kind.Kind, Name: "one"}
			tracker.Track(first, &objects.Desired{Key: key}, objects.ManagedMetadata{}, objects.Digest{})
			record := tracker.Observe(key, live)
			asks := map[objects.OwnerKey]*probes.Needs{}
			for _, s := range steps {
				declared := map[schema.GroupKind]probes.Needs{}
				delete(asks, s.owner)
				if s.needs != nil {
					declared[kind], asks[s.owner] = *s.needs, s.needs
				}
				since := tracker.Probe(s.owner, "", declared)[kind]
				if lacks := record.FieldsGeneration < since; lacks != s.lacks {
					t.Errorf("%s: the record lacks something: %t, want %t", s.reason, lacks, s.lacks)
				}
				if record = tracker.Observe(key, live); record.FieldsGeneration < since {
					t.Errorf("%s: a new record lacks something", s.reason)
				}
				for _, other := range asks {
					if got := probes.Trim(decoded(t, record.Trimmed), *other); !bytes.Equal(got, probes.Trim(live.Object, *other)) {
						t.Errorf("%s: the record has %s of the fields that are read", s.reason, got)
					}
				}
			}
		})
	}
}

func decoded(t *testing.T, trimmed []byte) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(trimmed, &object))
	return object
}

// TestEditedObjectsComeFirst: of all owners of a list, those are enqueued first whose objects were
// edited while no manager led.
func TestEditedObjectsComeFirst(t *testing.T) {
	t.Parallel()
	tracker := New(apinames.Default)
	var woken []objects.OwnerKey
	tracker.Wake = func(k objects.OwnerKey) { woken = append(woken, k) }
	var list []objects.Change
	for _, c := range []struct {
		owner    string
		observed objects.Observed
	}{
		{"as written", objects.Observed{Matches: true}},
		{"normalised by the API server", objects.Observed{}},
		{"edited", objects.Observed{Matches: true}},
		{"a field of others", objects.Observed{Writer: "others", Matches: true}},
		{"edited", objects.Observed{Writer: "others"}},
	} {
		key := objects.Key{Kind: "ConfigMap", Name: strconv.Itoa(len(list))}
		tracker.Track(objects.OwnerKey{Name: c.owner}, &objects.Desired{Key: key}, objects.ManagedMetadata{}, objects.Digest{})
		list = append(list, objects.Change{Key: key, Observed: &c.observed})
	}

	tracker.Changed(list...)
	want := []objects.OwnerKey{{Name: "edited"}, {Name: "as written"}, {Name: "normalised by the API server"}, {Name: "a field of others"}}
	if !slices.Equal(woken, want) {
		t.Errorf("woke %v, want %v", woken, want)
	}
}

// TestChangedWakesFormerControllers: adoption leaves an owner reference, which enqueues a lone set
// when its successor adopts an object.
func TestChangedWakesFormerControllers(t *testing.T) {
	t.Parallel()
	first, second, foreign := objects.OwnerKey{Name: "first"}, objects.OwnerKey{Name: "second"}, types.UID("foreign")
	key := objects.Key{Kind: "ConfigMap", Name: "one"}
	for _, c := range []struct {
		reason string
		refs   []metav1.OwnerReference
		want   []objects.OwnerKey
	}{
		{"no references", nil, []objects.OwnerKey{second}},
		{"its own controller", []metav1.OwnerReference{{UID: "2", Controller: new(true)}}, []objects.OwnerKey{second}},
		{"a former controller", []metav1.OwnerReference{{UID: "1"}, {UID: "2", Controller: new(true)}}, []objects.OwnerKey{second, first}},
		{"an unknown owner", []metav1.OwnerReference{{UID: foreign}, {UID: "2", Controller: new(true)}}, []objects.OwnerKey{second}},
	} {
		tracker := New(apinames.Default)
		var woken []objects.OwnerKey
		tracker.Wake = func(k objects.OwnerKey) { woken = append(woken, k) }
		tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: first}, "1")
		tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: second}, "2")
		tracker.Track(second, &objects.Desired{Key: key}, objects.ManagedMetadata{}, objects.Digest{})
		tracker.Changed(objects.Change{Key: key, Observed: &objects.Observed{Owners: apinames.Default.References(c.refs, nil)}})
		if !slices.Equal(woken, c.want) {
			t.Errorf("%s: woke %v, want %v", c.reason, woken, c.want)
		}
	}
}

// TestChangesOfAList: the owners of a list are enqueued once each, after all of its objects are known.
func TestChangesOfAList(t *testing.T) {
	t.Parallel()
	tracker := New(apinames.Default)
	first, second := objects.OwnerKey{Namespace: "shop", Name: "first"}, objects.OwnerKey{Namespace: "shop", Name: "second"}
	tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: first}, "1")
	tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: second}, "2")
	var woken []objects.OwnerKey
	tracker.Wake = func(k objects.OwnerKey) {
		woken = append(woken, k)
		require.Equal(t, 3, len(tracker.Strays(first))+len(tracker.Strays(second)), "known strays")
	}

	var changes []objects.Change
	for i, uid := range []types.UID{"2", "1", "2"} {
		refs := []metav1.OwnerReference{{UID: uid, Controller: new(true)}}
		changes = append(changes, objects.Change{
			Key:      objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: strconv.Itoa(i)},
			Observed: &objects.Observed{Owners: apinames.Default.References(refs, nil)},
		})
	}

	tracker.Changed(changes...)
	require.Equal(t, []objects.OwnerKey{second, first}, woken, "enqueued")
}

// TestStrays: an object that an owner controls and no revision contains is its stray, even if the
// object came first. A restore left the one with a remote owner of the same name and cluster.
func TestStrays(t *testing.T) {
	t.Parallel()
	local := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "app"}, UID: "u"}
	remote := local
	remote.Cluster = "home"
	controlledBy := func(owner objects.Owner, uid types.UID) *objects.Observed {
		owner.UID = uid
		meta := map[string]any{}
		owner.Put(meta)
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": meta}}
		return &objects.Observed{Owners: apinames.Default.References(u.GetOwnerReferences(), u.GetAnnotations()), Wrote: owner.Remote()}
	}
	of := func(namespace string) objects.Owner {
		owner := local
		owner.Namespace = namespace
		return owner
	}
	wrote := controlledBy(of(""), "u")
	wrote.Wrote = true
	elsewhere := remote
	elsewhere.Cluster = "another"
	for name, tc := range map[string]struct {
		owner objects.Owner
		obs   *objects.Observed
		want  bool
	}{
		"its own":                             {local, controlledBy(local, "u"), true},
		"of another namespace":                {of("other"), wrote, false},
		"of the cluster":                      {of(""), wrote, true},
		"of the cluster, and never written":   {of(""), controlledBy(of(""), "u"), false},
		"remote":                              {remote, controlledBy(remote, "u"), true},
		"remote, from before a restore":       {remote, controlledBy(remote, "former"), true},
		"local, from before a restore":        {local, controlledBy(local, "former"), false}, // the garbage collector's
		"of another management cluster":       {remote, controlledBy(elsewhere, "x"), false},
		"of an owner in the target":           {remote, controlledBy(local, "x"), false},
		"remote, and the owner is not remote": {local, controlledBy(remote, "x"), false},
	} {
		for _, early := range []bool{false, true} {
			tracker, key := New(apinames.Default), objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
			woken := 0
			tracker.Wake = func(objects.OwnerKey) { woken++ }
			if early {
				tracker.Changed(objects.Change{Key: key, Observed: tc.obs})
			}
			tracker.Own(tc.owner, tc.owner.UID)
			if !early {
				tracker.Changed(objects.Change{Key: key, Observed: tc.obs})
			}
			require.Equal(t, tc.want, len(tracker.Strays(tc.owner.OwnerKey)) > 0, fmt.Sprintf("%s, seen before its owner %t: is a stray", name, early))
			woken = 0
			tracker.Changed(objects.Change{Key: key, Observed: &objects.Observed{}})
			tracker.Changed(objects.Change{Key: key})
			tracker.Changed(objects.Change{Key: key})
			if left := len(tracker.Strays(tc.owner.OwnerKey)); left > 0 {
				t.Errorf("%s, seen before its owner %t: deleted, and a stray", name, early)
			}
			require.Equal(t, map[bool]int{true: 2}[tc.want], woken, fmt.Sprintf("%s, seen before its owner %t: its release and its end enqueue the owner", name, early))
		}
	}
}

// TestStrayOfMany: if a user moves an object from one of their owners to another, the former owner
// is enqueued once, and the object is a stray of the last one only.
func TestStrayOfMany(t *testing.T) {
	t.Parallel()
	tracker, key := New(apinames.Default), objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	woken := 0
	tracker.Wake = func(objects.OwnerKey) { woken++ }
	const owners = 100
	for i := range owners {
		name := strconv.Itoa(i)
		owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Namespace: "shop", Name: name}}
		tracker.Own(owner, types.UID(name))
		refs := []metav1.OwnerReference{{UID: types.UID(name), Controller: new(true)}}
		tracker.Changed(objects.Change{Key: key, Observed: &objects.Observed{Owners: apinames.Default.References(refs, nil)}})
		if got := len(tracker.strays.byKey[key]); got != 1 || len(tracker.Strays(owner.OwnerKey)) != 1 {
			t.Fatalf("given to %d owners, it is a stray of %d", i+1, got)
		}
	}
	require.Equal(t, 2*owners-1, woken, "owners were enqueued")
}

// TestListTypesOfTrackedObjects: the managedFields of an object decide only about this object. Any
// client that can write an object can write its managedFields, and a list with the wrong keys would
// be drift in each object of the kind.
func TestListTypesOfTrackedObjects(t *testing.T) {
	t.Parallel()
	tracker := New(apinames.Default)
	owner := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "victim", Name: "shop"}
	tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: owner}, "u")
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	content := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "victim"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	}
	key := objects.Key{Group: deployments.Group, Kind: deployments.Kind, Namespace: "victim", Name: "web"}
	raw, err := json.Marshal(content)
	require.NoError(t, err)
	desired, metadata := &objects.Desired{Key: key, Version: "v1", Raw: raw}, objects.ManagedMetadata{Owner: objects.Owner{Names: apinames.Default, OwnerKey: owner, UID: "u"}}
	tracker.Track(owner, desired, metadata, objects.Digest{1})
	template, err := desired.Object(metadata)
	require.NoError(t, err)
	live := func(namespace, list string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(template)}
		u.SetNamespace(namespace)
		u.Object["spec"].(map[string]any)["containers"] = []any{map[string]any{"name": "sidecar", "image": "s"}, map[string]any{"name": "web", "image": "web:1"}}
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: apinames.Default.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{` + list + `:{".":{},"f:image":{},"f:name":{}}}}}`),
		}})
		return u
	}
	before := tracker.Observe(key, live("victim", `"k:{\"name\":\"web\"}"`))
	if !before.Matches {
		t.Fatal("an injected sidecar is drift")
	}
	forged := key
	forged.Namespace = "evil"
	tracker.Track(objects.OwnerKey{Kind: owner.Kind, Namespace: "evil", Name: "shop"}, &objects.Desired{Key: forged, Version: "v1", Raw: raw}, metadata, objects.Digest{2})
	for _, list := range []string{`"k:{\"zzz\":\"x\"}"`, `"v:\"x\""`} {
		tracker.Observe(forged, live("evil", list))
		after := tracker.Observe(key, live("victim", `"k:{\"name\":\"web\"}"`))
		if !after.Matches || after.Projection != before.Projection {
			t.Errorf("an object of another namespace with %s makes this one drift: matches %t", list, after.Matches)
		}
	}
}

// endedOf returns the observed end of a Job, or nil.
func endedOf(tracker *Tracker, owner objects.OwnerKey, key objects.Key) *objects.Finished {
	if ended, seen := tracker.FinishedOf(owner)[key]; seen {
		return &ended
	}
	return nil
}

// The end of a Job outlives the Job, until it is recorded.
func TestTrackerRecordsFinished(t *testing.T) {
	t.Parallel()
	key := objects.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "migrate"}
	owner := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}
	desired := &objects.Desired{Key: key, Version: "v1", Content: objects.Digest{7}, Raw: []byte(
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"},"spec":{"parallelism":1}}`)}
	metadata := objects.ManagedMetadata{Revision: 3, Owner: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "owner"}}
	job := func(controller string, parallelism int64, conditions ...string) *unstructured.Unstructured {
		template, err := desired.Object(metadata)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: template}
		u.SetUID("job")
		u.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "app", UID: "owner", Controller: ptr.To(true),
		}})
		if controller != "" {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: controller, UID: "other", Controller: ptr.To(true)}})
		}
		var all []any
		for _, typ := range conditions {
			all = append(all, map[string]any{"type": typ, "status": "True"})
		}
		u.Object["status"] = map[string]any{"conditions": all}
		u.Object["spec"] = map[string]any{"parallelism": parallelism}
		return u
	}
	tracker := New(apinames.Default)
	tracker.Wake = func(objects.OwnerKey) {}
	tracker.Own(objects.Owner{Names: apinames.Default, OwnerKey: owner}, "owner")
	tracker.Track(owner, desired, metadata, objects.Digest{9})

	tracker.Observe(key, job("", 1))
	tracker.Observe(key, job("nightly", 1, "Complete"))
	if got := endedOf(tracker, owner, key); got != nil {
		t.Fatalf("a Job that runs, or is another owner's, has not ended: %+v", got)
	}
	tracker.Observe(key, job("", 2, "Complete"))
	if got := endedOf(tracker, owner, key); got == nil || !got.Shows.IsZero() {
		t.Errorf("what it ran with is not known by values that differ: %+v", got)
	}
	tracker.Observe(key, job("", 1, "Failed"))
	tracker.Changed(objects.Change{Key: key}) // it was deleted
	want := &objects.Finished{UID: "job", Outcome: objects.Failed, Revision: 3, Shows: objects.Digest{7}}
	require.Equal(t, want, endedOf(tracker, owner, key), "its recorded end")
	newer := *want
	newer.Outcome = objects.Succeeded
	tracker.ForgetFinished(map[objects.Key]objects.Finished{key: newer})
	if endedOf(tracker, owner, key) == nil {
		t.Error("another end was recorded, and this one is forgotten")
	}
	tracker.ForgetFinished(map[objects.Key]objects.Finished{key: *want})
	if got := endedOf(tracker, owner, key); got != nil {
		t.Errorf("it is recorded, and remembered all the same: %+v", got)
	}
	tracker.Observe(key, job("", 1, "Complete"))
	tracker.Untrack(owner, key)
	if got := endedOf(tracker, owner, key); got != nil {
		t.Errorf("no owner follows the Job, and its end is remembered: %+v", got)
	}
}
