package mutationcache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

// Store keeps responses to writes until the cache has them, or for
// limits.FreshRemembered. The zero Store is empty and ready for use. It is safe for
// concurrent use.
type Store struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	entries map[types.UID]*entry
	swept   time.Time
	// orphaned are the objects that were observed in a state that is Orphaned.
	orphaned sets.Set[types.UID]
}

type entry struct {
	// object is nil if it was deleted.
	object client.Object
	// owner is set until a cache has the object.
	owner string
	at    time.Time
}

// NewStore returns an empty Store.
func NewStore() *Store { return &Store{} }

// Put keeps the response to an update or patch.
func (s *Store) Put(object client.Object) { s.put(object, "") }

// Patch sends the difference to before in one merge patch with an optimistic lock, and keeps the
// response.
func (s *Store) Patch(ctx context.Context, c client.Client, before, object client.Object) error {
	err := c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		s.Put(object)
	}
	return err
}

// Change changes an object, and sends the difference as Patch does.
func (s *Store) Change(ctx context.Context, c client.Client, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	change()
	return s.Patch(ctx, c, before, object)
}

// AddFinalizer puts a finalizer on an object that lacks it.
func (s *Store) AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	err := s.Change(ctx, c, object, func() { object.SetFinalizers(append(slices.Clone(object.GetFinalizers()), finalizer)) })
	if err != nil {
		return fmt.Errorf("put the finalizer on: %w", err)
	}
	return nil
}

// PutCreated keeps the response to a create. Until the cache has the object, Created
// returns it for that owner.
func (s *Store) PutCreated(owner string, object client.Object) { s.put(object, owner) }

func (s *Store) put(object client.Object, owner string) {
	kept := object.DeepCopyObject().(client.Object)
	kept.SetManagedFields(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if old := s.entries[object.GetUID()]; old != nil {
		if old.object == nil || !newer(kept, old.object) {
			return // deleted already, or responses that arrived in another order
		}
		if owner == "" {
			owner = old.owner
		}
	}

	s.set(object.GetUID(), &entry{object: kept, owner: owner})
}

// Deleted notes that an object was deleted, as confirmed by the API server.
func (s *Store) Deleted(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.orphaned.Delete(uid)
	s.set(uid, &entry{})
}

func (s *Store) set(uid types.UID, e *entry) {
	if s.entries == nil {
		s.entries = map[types.UID]*entry{}
	}
	e.at = s.now()
	s.entries[uid] = e
}

// Latest returns a cached object or the response to a write of it, whichever is newer. It
// returns nil if the object was deleted: check that before a type assertion. Callers can
// change the result if they can change cached.
func (s *Store) Latest(cached client.Object) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[cached.GetUID()]
	switch {
	case e == nil:
		return cached
	case e.object == nil:
		return nil
	case s.overtakes(e, cached):
		return e.object.DeepCopyObject().(client.Object)
	}

	return cached
}

// overtakes reports whether an entry is newer than the cached object, and drops the entry if
// it is not. s.mu is held.
func (s *Store) overtakes(e *entry, cached client.Object) bool {
	if newer(e.object, cached) {
		e.owner = ""
		return true
	}
	delete(s.entries, cached.GetUID())
	return false
}

// Contains reports whether the response to a write of an object is in this state or a
// later one. It can be false for a write of this process too: an event can overtake the
// response, and a response can be lost.
func (s *Store) Contains(observed client.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[observed.GetUID()]
	return e != nil && (e.object == nil || !newer(observed, e.object))
}

// Created returns the objects that were created for an owner and that no cache has yet,
// in the order of the last writes.
func (s *Store) Created(owner string) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	var found []*entry
	for _, e := range s.entries {
		if e.object != nil && e.owner == owner && owner != "" {
			found = append(found, e)
		}
	}

	slices.SortFunc(found, func(a, b *entry) int { return a.at.Compare(b.at) })
	objects := make([]client.Object, len(found))
	for i, e := range found {
		objects[i] = e.object.DeepCopyObject().(client.Object)
	}

	return objects
}

// Forget drops the objects that were created for an owner that no longer exists.
func (s *Store) Forget(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, e := range s.entries {
		if e.owner == owner && owner != "" {
			delete(s.entries, uid)
		}
	}
}

// Handler returns a handler of informers that drops entries which the cache has.
func (s *Store) Handler() cache.ResourceEventHandler {
	observed := func(object any) {
		cached, ok := object.(client.Object)
		if !ok {
			return
		}
		s.noteOrphaned(cached)
		if s.has(cached.GetUID()) {
			s.Observed(cached)
		}
	}

	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observed,
		UpdateFunc: func(_, object any) { observed(object) },
		DeleteFunc: s.drop,
	}
}

// EventHandler returns a handler of a controller that enqueues a request for each object, after
// Handler has the event.
func (s *Store) EventHandler(requestFor func(client.Object) reconcile.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	cached := s.Handler()
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			cached.OnAdd(e.Object, e.IsInInitialList)
			q.Add(requestFor(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			cached.OnUpdate(e.ObjectOld, e.ObjectNew)
			q.Add(requestFor(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			cached.OnDelete(cache.DeletedFinalStateUnknown{Obj: e.Object})
			q.Add(requestFor(e.Object))
		},
	}
}

func (s *Store) has(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[uid] != nil
}

// Observed drops an entry that the cache has, after limits.FreshShown: a reconcile might have
// read the cache just before.
func (s *Store) Observed(object client.Object) {
	s.noteOrphaned(object)
	panics.After(limits.FreshShown, "dropping what the cache has", func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// A late event does not bring back an object that was deleted.
		if e := s.entries[object.GetUID()]; e != nil && e.object != nil {
			s.overtakes(e, object)
		}
	})
}

func (s *Store) drop(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if cached, ok := object.(client.Object); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.entries, cached.GetUID())
		s.orphaned.Delete(cached.GetUID())
	}
}

// Orphaned reports whether an object was ever observed while it was being deleted with its
// dependents orphaned. A cache might show only the state after the garbage collector was done,
// and the collector might have missed a dependent.
func (s *Store) Orphaned(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orphaned.Has(uid)
}

func (s *Store) noteOrphaned(object client.Object) {
	if object.GetDeletionTimestamp() == nil || !slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orphaned == nil {
		s.orphaned = sets.New[types.UID]()
	}
	s.orphaned.Insert(object.GetUID())
}

// sweep drops expired entries, at intervals.
func (s *Store) sweep() {
	now := s.now()
	if now.Sub(s.swept) < limits.FreshRemembered/2 {
		return
	}

	s.swept = now
	for uid, e := range s.entries {
		if now.Sub(e.at) >= limits.FreshRemembered {
			delete(s.entries, uid)
		}
	}
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// newer reports whether a's state is later than b's; false if they cannot be compared.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
