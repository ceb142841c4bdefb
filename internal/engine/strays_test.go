package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/memory"
	"lockstep.run/lockstep/test/require"
)

// TestStraysAreRemoved: an object that a user creates under the reference of an owner is removed,
// even if its deletion fails after a former object of its name was removed, and even if it loses
// the label of the watch at that moment.
func TestStraysAreRemoved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	server, here, e, r := ownerOfConfigMaps(func() time.Time { return now })
	counted := map[engine.Event]int{}
	e.Count = func(event engine.Event) { counted[event]++ }
	e.Prepare(r)
	key := objects.Key{Kind: "ConfigMap", Namespace: shop.Namespace, Name: "stray"}
	for _, tc := range []struct {
		name string
		// first runs before the first deletion, which fails with its error.
		first func() error
	}{
		{"that succeeds", func() error { return nil }},
		{"that is refused, of one that came back", func() error { return apierrors.NewServiceUnavailable("a webhook is down") }},
		{"that races with one who takes the label off", func() error {
			_, err := server.Edit(key, "user", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
			deliver(here) // the watch shows the object as deleted
			return err
		}},
	} {
		here.Send = func(_ context.Context, q memory.Request, do func() error) error {
			if first := tc.first; q.Verb == "delete" && first != nil {
				tc.first = nil
				if err := first(); err != nil {
					return err
				}
			}
			return do()
		}
		createOwned(t, server, key)
		deliver(here)
		for range 3 {
			end := r.Start(func() time.Time { return now }, time.Second)
			for again := true; again; {
				out, err := e.Step(t.Context(), r, engine.Want{Store: notes{}})
				require.NoError(t, err)
				again = out.Again
			}
			_, err := e.Background(t.Context(), r, engine.Want{Store: notes{}})
			require.NoError(t, err)
			end()
			deliver(here)
			now = now.Add(time.Hour)
		}
		if live := server.Get(key); live != nil {
			t.Errorf("a deletion %s: the object is left: %v", tc.name, live.Object)
		}
		if strays := e.Strays(r); len(strays) > 0 {
			t.Errorf("a deletion %s: strays %v", tc.name, strays)
		}
	}
	want := map[engine.Event]int{{Action: phases.Delete}: 3, {Action: phases.Delete, Failed: true}: 2}
	require.Equal(t, want, counted, "events")
}

// TestCameBackBeforeItsRevisionIsDropped: if an object comes back after its revision was found to
// be torn down, it is a stray once the revision is dropped. If the set of a revision is removed
// otherwise, its object is left.
func TestCameBackBeforeItsRevisionIsDropped(t *testing.T) {
	t.Parallel()
	for _, tornDown := range []bool{false, true} {
		server, here, e, r := ownerOfConfigMaps(time.Now)
		key := objects.Key{Kind: "ConfigMap", Namespace: shop.Namespace, Name: "one"}
		rev := revisionOf(shop, key, phases.Recorded{Claimed: true})
		r.Put(rev)
		e.Prepare(r)
		createOwned(t, server, key)
		deliver(here)
		if _, found := here.Observed(key); !found || len(e.Strays(r)) > 0 {
			t.Errorf("found: %t, strays %v", found, e.Strays(r))
		}
		drop := e.Drop
		if tornDown {
			drop = e.DropTornDown
		}
		drop(r, rev.UID)
		if strays := e.Strays(r); slices.Contains(strays, key) != tornDown {
			t.Errorf("torn down %t: strays %v", tornDown, strays)
		}
	}
}

// TestRestoredObjectsAreAwaited: a removal waits for an object that names its owner by the UID from
// before a restore, although its revision has no claim. The end of the object enqueues the owner.
func TestRestoredObjectsAreAwaited(t *testing.T) {
	t.Parallel()
	for _, teardown := range []bool{false, true} {
		server, here, e, _ := ownerOfConfigMaps(time.Now)
		here.Send = func(_ context.Context, _ memory.Request, do func() error) error { return do() }
		woken := 0
		e.Tracker.Wake = func(objects.OwnerKey) { woken++ }
		owner := shop
		owner.UID = "restored"
		r := engine.New(owner)
		r.Claims = claims.NewTable(func(objects.Owner) {})
		key := objects.Key{Kind: "ConfigMap", Namespace: shop.Namespace, Name: "one"}
		r.Put(revisionOf(owner, key, phases.Recorded{Removing: !teardown}))
		e.Prepare(r)
		createOwned(t, server, key)
		_, err := server.Edit(key, "user", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/hold"}) })
		require.NoError(t, err)

		step := func() (out engine.Outcome) {
			defer r.Start(time.Now, time.Second)()
			for again := true; again; again = out.Again {
				deliver(here)
				out, err = e.Step(t.Context(), r, engine.Want{Store: notes{}, Teardown: teardown})
				require.NoError(t, err)
			}
			return out
		}
		if out := step(); out.TornDown || !out.RequeueAt.IsZero() || server.Get(key).GetDeletionTimestamp() == nil {
			t.Errorf("teardown %t: the object is not awaited", teardown)
		}
		_, err = server.Edit(key, "user", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		require.NoError(t, err)
		woken = 0
		if deliver(here); woken != 1 {
			t.Errorf("teardown %t: the end of the object enqueues the owner %d times", teardown, woken)
		}
		if out := step(); !out.TornDown {
			t.Errorf("teardown %t: does not end", teardown)
		}
	}
}

// revisionOf returns a restored revision with one ConfigMap.
func revisionOf(owner objects.Owner, key objects.Key, recorded phases.Recorded) *engine.Revision {
	rev := engine.NewRevision()
	rev.Identify("shop", "shop-1", "")
	rev.Metadata = objects.ManagedMetadata{Owner: owner}
	rev.Phases = []phases.Phase{{Name: "one", Objects: []*objects.Desired{desired(configMaps, key.Name)}}}
	rev.SetProbes(&probes.Set{})
	rev.Restore(recorded)
	return rev
}

// ownerOfConfigMaps returns an owner without revisions, and the engine of its cluster, which
// watches ConfigMaps.
func ownerOfConfigMaps(now func() time.Time) (*memory.Server, *memory.Cluster, *engine.Engine, *engine.Rollout) {
	server, tracker := memory.NewServer(names, now, memory.Kind{GroupVersionKind: configMaps}), tracking.New(names)
	here := server.Connect()
	here.Observe, here.Changed, here.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
	tracker.Wake = func(objects.OwnerKey) {}
	e, r := &engine.Engine{Cluster: here, Tracker: tracker, Pool: engine.NewPool(1, 1)}, engine.New(shop)
	r.Claims = claims.NewTable(func(objects.Owner) {})
	here.Use("test", []schema.GroupKind{configMaps.GroupKind()})
	here.Sync(configMaps.GroupKind())
	return server, here, e, r
}

// createOwned creates a ConfigMap as a user who names the shop as its controller.
func createOwned(t *testing.T, server *memory.Server, key objects.Key) {
	t.Helper()
	meta := map[string]any{"name": key.Name, "namespace": key.Namespace, "labels": map[string]any{names.ManagedLabel: names.ManagedValue}}
	shop.Put(meta)
	if _, err := server.Create(key, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}}, "user"); err != nil {
		t.Fatal(err)
	}
}

// deliver has the watch show everything.
func deliver(here *memory.Cluster) {
	for here.Deliver(configMaps.GroupKind()) {
	}
}

// TestForeignStraysHoldNothing: every tenant can read the UID of a cluster-scoped owner on each of
// its objects. Objects that tenants create under it, and hold by a finalizer, hold neither the
// owner's deletion nor the archival of its revisions.
func TestForeignStraysHoldNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, manager string
		refused         bool
		// steps are the steps of a teardown until it is held.
		steps    int
		deletion bool
	}{
		{"written by another client", "user", false, 1, false},
		{"with managedFields that name the engine", names.FieldManager, false, 2, true},
		{"which the account cannot delete", names.FieldManager, true, 2, false},
	} {
		for _, teardown := range []bool{false, true} {
			server, here, e, _ := ownerOfConfigMaps(time.Now)
			owner := objects.Owner{Names: names, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "platform"}, UID: "platform"}
			r := engine.New(owner)
			r.Claims, r.Account = claims.NewTable(func(objects.Owner) {}), objects.Account{Namespace: "platform", Name: "deployer"}
			key := objects.Key{Kind: "ConfigMap", Namespace: "evil", Name: "x"}
			here.Send = func(_ context.Context, q memory.Request, do func() error) error {
				if q.Verb == "delete" && tc.refused {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New(`User "system:serviceaccount:platform:deployer" cannot delete resource "configmaps" in API group "" in the namespace "evil"`))
				}
				return do()
			}
			e.Prepare(r)
			meta := map[string]any{"name": key.Name, "namespace": key.Namespace, "labels": map[string]any{names.ManagedLabel: names.ManagedValue}, "finalizers": []any{"evil.example/hold"}}
			owner.Put(meta)
			if _, err := server.Create(key, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}}, tc.manager); err != nil {
				t.Fatal(err)
			}
			deliver(here)
			steps := 0
			for torn := false; !torn && steps < 10; steps++ {
				end := r.Start(time.Now, time.Second)
				out, err := e.Step(t.Context(), r, engine.Want{Store: notes{}, Teardown: teardown})
				require.NoError(t, err)
				if !teardown {
					_, err = e.Background(t.Context(), r, engine.Want{Store: notes{}})
					require.NoError(t, err)
				}
				end()
				deliver(here)
				torn = out.TornDown
			}
			if want := tc.steps; teardown && steps != want || !teardown && steps != 1 {
				t.Errorf("%s, teardown %t: held for %d steps", tc.reason, teardown, steps)
			}
			require.Equal(t, tc.deletion, server.Get(key).GetDeletionTimestamp() != nil, fmt.Sprintf("%s, teardown %t: deleted", tc.reason, teardown))
		}
	}
}

// TestStraysAreBounded: objects that a user creates under the reference of an owner become strays
// of the owner only up to the limit.
func TestStraysAreBounded(t *testing.T) {
	t.Parallel()
	server, here, e, r := ownerOfConfigMaps(time.Now)
	e.Prepare(r)
	for i := range limits.Strays + 10 {
		createOwned(t, server, objects.Key{Kind: "ConfigMap", Namespace: shop.Namespace, Name: strconv.Itoa(i)})
	}
	deliver(here)
	require.Equal(t, limits.Strays, len(e.Strays(r)), "strays")
}

// If a revision collides with an object from outside the engine, it is checked again after a while.
// If it collides with the claim of another owner, it is not: the release of the claim enqueues it.
func TestRefusedRevisionIsCheckedAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	server := memory.NewServer(apinames.Default, func() time.Time { return now }, memory.Kind{GroupVersionKind: configMaps}, memory.Kind{GroupVersionKind: deployments})
	tracker, here := tracking.New(apinames.Default), server.Connect()
	here.Observe, here.Changed, here.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
	here.Send = func(_ context.Context, _ memory.Request, do func() error) error { return do() }
	tracker.Wake = func(objects.OwnerKey) {}
	e := &engine.Engine{Cluster: here, Tracker: tracker, Pool: engine.NewPool(1, 1)}
	settings := desired(configMaps, "settings")
	settings.NeverAdopted = false
	taken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop"},
	}}
	taken.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n", Controller: ptr.To(true)}})
	if _, err := server.Create(settings.Key, taken, "kubectl"); err != nil {
		t.Fatal(err)
	}
	rev := engine.NewRevision()
	rev.Identify("shop", "shop-1", "")
	rev.Metadata = objects.ManagedMetadata{Owner: shop}
	rev.Phases = []phases.Phase{{Name: "a", Objects: []*objects.Desired{settings}}}
	rev.SetProbes(&probes.Set{})
	owner := engine.New(shop)
	owner.Claims = claims.NewTable(func(objects.Owner) {})
	owner.Put(rev)
	step := func() engine.Outcome {
		t.Helper()
		defer owner.Start(func() time.Time { return now }, time.Second)()
		out, err := e.Step(t.Context(), owner, engine.Want{Current: rev.UID, Store: notes{}})
		if err != nil || !rev.Refused() {
			t.Fatalf("refused: %v, error: %v", rev.Refused(), err)
		}
		return out
	}
	if out := step(); !out.RequeueAt.After(now) {
		t.Errorf("an object from outside is looked at again at %v, now it is %v", out.RequeueAt, now)
	}
	other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "other"}, UID: "other"}
	require.NoError(t, owner.Claims.Claim(other, []objects.Key{settings.Key}))
	now = now.Add(time.Minute)
	if out := step(); !out.RequeueAt.IsZero() {
		t.Errorf("the claim of another owner is awaited until %v, now it is %v", out.RequeueAt, now)
	}
}
