package reflector

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Listener receives the objects of a Reflector, on one goroutine.
type Listener[T any] interface {
	// Listed receives all objects: first, and after a gap.
	Listed(all []T)
	// Changed receives an object that is new or changed.
	Changed(obj T)
	// Deleted receives a deleted object.
	Deleted(obj T)
}

// NewStore returns a store that passes objects on and keeps none.
func NewStore[T any](listener Listener[T]) cache.ReflectorStore { return listenerStore[T]{listener} }

type listenerStore[T any] struct{ listener Listener[T] }

// Add passes on a new object.
func (s listenerStore[T]) Add(obj any) error { return s.Update(obj) }

// Update passes on a changed object.
func (s listenerStore[T]) Update(obj any) error { return pass(obj, s.listener.Changed) }

// Delete passes on a deleted object.
func (s listenerStore[T]) Delete(obj any) error { return pass(obj, s.listener.Deleted) }

// Replace passes on all objects.
func (s listenerStore[T]) Replace(items []any, _ string) error {
	all := make([]T, 0, len(items))
	for _, item := range items {
		if err := pass(item, func(obj T) { all = append(all, obj) }); err != nil {
			return err
		}
	}
	return receive(func() { s.listener.Listed(all) })
}

// receive returns a panic of a listener as an error: client-go logs it and raises it again.
func receive(listen func()) error {
	return panics.Guard(context.Background(), "receiving what a watch shows", func() error { listen(); return nil })
}

// Resync does nothing.
func (s listenerStore[T]) Resync() error { return nil }

func pass[T any](obj any, to func(T)) error {
	typed, ok := obj.(T)
	if !ok {
		return fmt.Errorf("a watch delivered an unexpected %T", obj)
	}
	return receive(func() { to(typed) })
}
