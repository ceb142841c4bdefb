package mutationcache_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func object(uid, version string) client.Object {
	set := &corev1alpha1.ObjectSet{}
	set.UID, set.ResourceVersion, set.Name = types.UID(uid), version, uid
	return set
}

// describe names objects as uid@version; a nil one was deleted.
func describe(objects ...client.Object) []string {
	var names []string
	for _, o := range objects {
		if o == nil {
			names = append(names, "gone")
			continue
		}
		names = append(names, string(o.GetUID())+"@"+o.GetResourceVersion())
	}
	return names
}

func TestLatest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		before func(*mutationcache.Store)
		cached client.Object
		want   string
	}{
		"nothing known":        {"the cache is all there is", func(*mutationcache.Store) {}, object("a", "5"), "a@5"},
		"cache behind":         {"our own write is newer", func(s *mutationcache.Store) { s.Put(object("a", "10")) }, object("a", "9"), "a@10"},
		"cache ahead":          {"another write came later", func(s *mutationcache.Store) { s.Put(object("a", "10")) }, object("a", "11"), "a@11"},
		"versions are numbers": {"9 is older than 10", func(s *mutationcache.Store) { s.Put(object("a", "9")) }, object("a", "10"), "a@10"},
		"responses out of order": {"a status write that ended later can have been stored earlier",
			func(s *mutationcache.Store) { s.Put(object("a", "10")); s.Put(object("a", "9")) }, object("a", "8"), "a@10"},
		"opaque versions": {"what cannot be ordered is left to the cache",
			func(s *mutationcache.Store) { s.Put(object("a", "x")) }, object("a", "y"), "a@y"},
		"another object": {"an object that was made again has another uid",
			func(s *mutationcache.Store) { s.Put(object("a", "10")) }, object("b", "9"), "b@9"},
		"deleted": {"the cache still has it", func(s *mutationcache.Store) { s.Deleted("a") }, object("a", "9"), "gone"},
		"late response of a deleted object": {"deletion is final for a UID",
			func(s *mutationcache.Store) { s.Deleted("a"); s.Put(object("a", "10")) }, object("a", "9"), "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &mutationcache.Store{}
			tc.before(store)
			if got := describe(store.Latest(tc.cached)); got[0] != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got[0], tc.want)
			}
		})
	}
}

func TestCreated(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	store := &mutationcache.Store{Now: func() time.Time { at = at.Add(1); return at }}
	store.PutCreated("one", object("a", "1"))
	store.PutCreated("one", object("b", "2"))
	store.PutCreated("two", object("c", "3"))
	store.PutCreated("one", object("d", "4"))
	store.Put(object("a", "5"))
	store.Put(object("e", "6"))
	store.Deleted("d")

	require.Equal(t, []string{"b@2", "a@5"}, describe(store.Created("one")...), "objects changed since are returned as they are now, deleted ones are not")
	if got := store.Created(""); len(got) != 0 {
		t.Error("an update was taken for a creation:", describe(got...))
	}
	if got := describe(store.Latest(object("a", "1"))); got[0] != "a@5" {
		t.Error("the cache shows the created object, yet in its first version:", got)
	}
	require.Equal(t, []string{"b@2"}, describe(store.Created("one")...), "an object that the cache shows must not be listed twice")
	store.Forget("one")
	if got := store.Created("one"); len(got) != 0 {
		t.Error("forgotten:", describe(got...))
	}
	if got := store.Created("two"); len(got) != 1 {
		t.Error("another owner's:", describe(got...))
	}
}

func TestWhatIsReturnedIsACopy(t *testing.T) {
	t.Parallel()
	store, set := &mutationcache.Store{}, object("a", "2")
	set.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	store.PutCreated("one", set)
	set.SetName("changed after Put")
	store.Created("one")[0].SetName("changed after Created")
	got := store.Latest(object("a", "1"))
	if got.GetName() != "a" || got.GetManagedFields() != nil {
		t.Errorf("got %s with %d managed fields", got.GetName(), len(got.GetManagedFields()))
	}
}

// The informer's events empty the store, so that it does not keep a second copy of the cache's
// objects.
func TestHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &mutationcache.Store{}
		handler := store.Handler()
		store.PutCreated("one", object("a", "5"))
		handler.OnAdd(object("a", "4"), false)
		require.Equal(t, 1, len(store.Created("one")), "a reader of the cache misses the object")
		time.Sleep(2 * limits.FreshShown)
		require.Equal(t, 0, len(store.Created("one")), "the cache shows the object, though an older state")
		if got := describe(store.Latest(object("a", "4"))); got[0] != "a@5" {
			t.Error("the cache is still behind:", got)
		}
		handler.OnUpdate(nil, object("a", "5"))
		if got := describe(store.Latest(object("a", "4"))); got[0] != "a@5" {
			t.Error("a reader of the cache misses the write:", got)
		}
		time.Sleep(2 * limits.FreshShown)
		if got := describe(store.Latest(object("a", "4"))); got[0] != "a@4" {
			t.Error("the entry should have been dropped:", got)
		}
		store.Deleted("a")
		handler.OnUpdate(nil, object("a", "6"))
		time.Sleep(2 * limits.FreshShown)
		if got := describe(store.Latest(object("a", "4"))); got[0] != "gone" {
			t.Error("a late event revived a deleted object:", got)
		}
		handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: object("a", "6")})
		store.PutCreated("one", object("b", "7"))
		handler.OnDelete(object("b", "7"))
		if got := store.Created("one"); len(got) != 0 {
			t.Error("created and deleted:", describe(got...))
		}
	})
}

func TestEntriesEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	store := &mutationcache.Store{Now: func() time.Time { return now }}
	store.PutCreated("one", object("a", "5"))
	store.Deleted("b")
	now = now.Add(limits.FreshRemembered)
	if got := store.Created("one"); len(got) != 0 {
		t.Error("a creation that no cache ever showed:", describe(got...))
	}
	if got := describe(store.Latest(object("b", "1"))); got[0] != "b@1" {
		t.Error("a deletion that never happened:", got)
	}
}

func TestContains(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		before func(*mutationcache.Store)
		want   bool
	}{
		"never written":           {"another writer", func(*mutationcache.Store) {}, false},
		"the response":            {"our own write", func(s *mutationcache.Store) { s.Put(object("a", "10")) }, true},
		"an older response":       {"our own write before the last", func(s *mutationcache.Store) { s.Put(object("a", "12")) }, true},
		"newer than the response": {"a write without a response, or another writer", func(s *mutationcache.Store) { s.Put(object("a", "9")) }, false},
		"gone":                    {"no action is needed", func(s *mutationcache.Store) { s.Deleted("a") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mutationcache.NewStore()
			tc.before(s)
			require.Equal(t, tc.want, s.Contains(object("a", "10")), fmt.Sprintf("%s: Contains", tc.reason))
		})
	}
}

// TestObserved: a reader of the cache has time to call Latest; after that the store is empty.
func TestObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := mutationcache.NewStore()
		store.Put(object("a", "5"))
		store.Put(object("b", "7"))
		store.Observed(object("a", "5"))
		store.Observed(object("b", "6"))
		if got := describe(store.Latest(object("a", "4"))); got[0] != "a@5" {
			t.Error("a reader of the cache has to get the write:", got)
		}
		time.Sleep(2 * limits.FreshShown)
		if got := describe(store.Latest(object("a", "4"))); got[0] != "a@4" {
			t.Error("what the cache has is still held:", got)
		}
		if got := describe(store.Latest(object("b", "6"))); got[0] != "b@7" {
			t.Error("the cache has not shown our last write yet:", got)
		}
	})
}

// TestOrphaned: an observed orphaning deletion stays known after the garbage collector has
// finished it, until the object is deleted.
func TestOrphaned(t *testing.T) {
	t.Parallel()
	set := func(deleted bool, finalizers ...string) client.Object {
		set := object("a", "1")
		if deleted {
			set.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}
		set.SetFinalizers(finalizers)
		return set
	}
	for name, tc := range map[string]struct {
		states []client.Object
		want   bool
	}{
		"in the background": {states: []client.Object{set(false), set(true, "ours")}},
		"not deleted":       {states: []client.Object{set(false, metav1.FinalizerOrphanDependents)}},
		"orphaned":          {states: []client.Object{set(false), set(true, "ours", metav1.FinalizerOrphanDependents), set(true, "ours")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := mutationcache.NewStore()
			for _, state := range tc.states {
				store.Handler().OnUpdate(nil, state)
			}
			require.Equal(t, tc.want, store.Orphaned("a"), "orphaned")
			store.Handler().OnDelete(tc.states[0])
			if store.Orphaned("a") {
				t.Error("a deleted object is remembered")
			}
		})
	}
}
