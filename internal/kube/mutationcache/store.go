package mutationcache

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/limits"
)

// Store remembers the answers to our own writes until the cache has them. The
// zero Store is empty and ready for use, also by several goroutines.
type Store struct {
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time

	mu      sync.Mutex
	entries map[types.UID]*entry
	swept   time.Time
}

// entry is what is known of one object.
type entry struct {
	// object is nil for one that is known to be gone.
	object client.Object
	// owner is set while no cache has shown the object yet.
	owner string
	at    time.Time
}

// NewStore returns an empty Store.
func NewStore() *Store { return &Store{} }

// Put remembers the answer to an update or patch.
func (s *Store) Put(object client.Object) { s.put(object, "") }

// PutCreated remembers the answer to a create. Until the cache shows the object,
// Created returns it for that owner.
func (s *Store) PutCreated(owner string, object client.Object) { s.put(object, owner) }

func (s *Store) put(object client.Object, owner string) {
	kept := object.DeepCopyObject().(client.Object)
	kept.SetManagedFields(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	old := s.entries[object.GetUID()]
	if old != nil {
		if old.object == nil || !newer(kept, old.object) {
			return // gone already, or answers that arrived in another order
		}
		if owner == "" {
			owner = old.owner
		}
	}
	s.set(object.GetUID(), &entry{object: kept, owner: owner})
}

// Deleted remembers that an object is gone, because the API server said so.
func (s *Store) Deleted(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.set(uid, &entry{})
}

func (s *Store) set(uid types.UID, e *entry) {
	if s.entries == nil {
		s.entries = map[types.UID]*entry{}
	}
	e.at = s.now()
	s.entries[uid] = e
}

// Newest returns the newer one of a cached object and what is remembered of it,
// or nil where the object is known to be gone: check that before a type
// assertion. What it returns may be changed if cached may.
func (s *Store) Newest(cached client.Object) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[cached.GetUID()]
	switch {
	case e == nil:
		return cached
	case e.object == nil:
		return nil
	case newer(e.object, cached):
		e.owner = ""
		return e.object.DeepCopyObject().(client.Object)
	}
	delete(s.entries, cached.GetUID())
	return cached
}

// Knows tells whether an object is in a state that our own writes made or went
// past. A state that the store does not know is not always someone else's: an
// event may overtake the answer, and of a write without an answer the store was
// never told.
func (s *Store) Knows(seen client.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[seen.GetUID()]
	return e != nil && (e.object == nil || !newer(seen, e.object))
}

// Created returns what was created for an owner and no cache has shown yet, in
// the order of our last writes.
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

// Forget drops what was created for an owner that is gone.
func (s *Store) Forget(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, e := range s.entries {
		if e.owner == owner && owner != "" {
			delete(s.entries, uid)
		}
	}
}

// Handler returns a handler for the informers of what is put into the store. It
// drops each entry a while after the cache has caught up, see Shown; without it
// entries stay until Newest is asked or their time is over.
func (s *Store) Handler() cache.ResourceEventHandler {
	shown := func(object any) {
		if cached, ok := object.(client.Object); ok && s.knows(cached.GetUID()) {
			s.Shown(cached)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    shown,
		UpdateFunc: func(_, object any) { shown(object) },
		DeleteFunc: s.gone,
	}
}

func (s *Store) knows(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[uid] != nil
}

// seen drops what is remembered of an object that the cache shows now, where that
// is no newer.
func (s *Store) seen(cached client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[cached.GetUID()]
	if e == nil || e.object == nil {
		return // a late event of an object that is gone
	}
	if newer(e.object, cached) {
		e.owner = ""
		return
	}
	delete(s.entries, cached.GetUID())
}

// Shown drops what is remembered of an object a while after the cache has shown it,
// so that nobody who has just read the cache misses what is newer.
func (s *Store) Shown(object client.Object) {
	time.AfterFunc(limits.FreshShown, func() { s.seen(object) })
}

func (s *Store) gone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if cached, ok := object.(client.Object); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.entries, cached.GetUID())
	}
}

// sweep drops entries whose time is over, each time that half of it has passed.
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

// newer reports whether a's state is later than b's. Versions that cannot be compared
// say nothing, and then b, the cache's object, stays.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
