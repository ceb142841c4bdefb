package cluster

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shelf holds the objects that a watch delivers. It is the store of a
// cache.Reflector.
type shelf struct {
	changed func()

	mu      sync.Mutex
	objects map[types.UID]client.Object
	synced  bool
}

// all returns the objects; ok is false before the first list is complete.
func (s *shelf) all() (objects []client.Object, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, obj := range s.objects {
		objects = append(objects, obj)
	}
	return objects, s.synced
}

func (s *shelf) put(item any, keep bool) error {
	obj, ok := item.(client.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", item)
	}
	obj.SetManagedFields(nil) // nobody reads them, and they are large
	s.mu.Lock()
	if keep {
		s.objects[obj.GetUID()] = obj
	} else {
		delete(s.objects, obj.GetUID())
	}
	s.mu.Unlock()
	s.changed()
	return nil
}

// Add implements cache.ReflectorStore.
func (s *shelf) Add(item any) error { return s.put(item, true) }

// Update implements cache.ReflectorStore.
func (s *shelf) Update(item any) error { return s.put(item, true) }

// Delete implements cache.ReflectorStore.
func (s *shelf) Delete(item any) error { return s.put(item, false) }

// Replace implements cache.ReflectorStore. An empty list is news, too.
func (s *shelf) Replace(items []any, _ string) error {
	objects := map[types.UID]client.Object{}
	for _, item := range items {
		obj, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("unexpected %T", item)
		}
		obj.SetManagedFields(nil)
		objects[obj.GetUID()] = obj
	}
	s.mu.Lock()
	s.objects, s.synced = objects, true
	s.mu.Unlock()
	s.changed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *shelf) Resync() error { return nil }
