package registry

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/loader/archive"
)

// flights is a singleflight whose work continues when its first caller is cancelled, and ends with its last one.
type flights struct {
	mu      sync.Mutex
	flights map[string]*flight
}

type flight struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	files   archive.Files
	err     error
}

func (f *flights) do(ctx context.Context, key string, work func(context.Context) (archive.Files, error)) (archive.Files, error) {
	f.mu.Lock()
	fl := f.flights[key]
	if fl == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		fl = &flight{done: make(chan struct{}), cancel: cancel}
		f.flights[key] = fl
		panics.Go(own, "reading an image", func() {
			defer cancel()
			defer close(fl.done)
			fl.files, fl.err = recovered(own, work)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.remove(key, fl)
		})
	}
	fl.waiting++
	f.mu.Unlock()

	select {
	case <-fl.done:
		return fl.files, fl.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.waiting--; fl.waiting == 0 {
		fl.cancel()
		f.remove(key, fl)
	}
	return nil, context.Cause(ctx)
}

// remove makes the next caller start a new download. f.mu is held.
func (f *flights) remove(key string, fl *flight) {
	if f.flights[key] == fl {
		delete(f.flights, key)
	}
}

// recovered turns a panic over the content of an image into an error.
func recovered(ctx context.Context, work func(context.Context) (archive.Files, error)) (files archive.Files, err error) {
	defer func() {
		if r := recover(); r != nil {
			files, err = nil, failf(ReasonInvalidImage, "", "the image cannot be read: %v", panics.Recovered(logr.FromContextOrDiscard(ctx), r, "reading the image"))
		}
	}()
	return work(ctx)
}
