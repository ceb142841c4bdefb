package registry

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"lockstep.run/lockstep/internal/kube/panics"
)

// flights is a singleflight whose work continues if its first caller is cancelled, and ends with
// its last caller.
type flights[T any] struct {
	mu      sync.Mutex
	flights map[string]*flight[T]
}

// flight is one piece of work with the number of its callers.
type flight[T any] struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	result  T
	err     error
}

// newFlights returns an empty group.
func newFlights[T any]() *flights[T] { return &flights[T]{flights: map[string]*flight[T]{}} }

// do runs work for a key, or waits for the same work of another caller. It returns the cause of ctx
// if the caller gives up first.
func (f *flights[T]) do(ctx context.Context, key string, work func(context.Context) (T, error)) (result T, err error) {
	f.mu.Lock()
	fl := f.flights[key]
	if fl == nil {
		// The work must not end with its first caller while others wait for it.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		fl = &flight[T]{done: make(chan struct{}), cancel: cancel}
		f.flights[key] = fl
		panics.Go(own, "reading an image", func() {
			defer cancel()
			defer close(fl.done)
			fl.result, fl.err = recovered(own, work)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.remove(key, fl)
		})
	}
	fl.waiting++
	f.mu.Unlock()

	select {
	case <-fl.done:
		return fl.result, fl.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// A later caller must not join cancelled work, so it leaves the map at once.
	if fl.waiting--; fl.waiting == 0 {
		fl.cancel()
		f.remove(key, fl)
	}
	return result, context.Cause(ctx)
}

// remove makes the next caller start the work again. f.mu is held.
func (f *flights[T]) remove(key string, fl *flight[T]) {
	if f.flights[key] == fl {
		delete(f.flights, key)
	}
}

// recovered turns a panic over the content of an image into an error.
func recovered[T any](ctx context.Context, work func(context.Context) (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = failf(ReasonInvalidImage, "", "the image cannot be read: %v", panics.Recovered(logr.FromContextOrDiscard(ctx), r, "reading the image"))
		}
	}()
	return work(ctx)
}
