package registry

import (
	"context"
	"sync"
)

// flights does one thing once for all who ask for it at the same time. Unlike
// a plain singleflight the work belongs to no caller: it goes on while anyone
// waits for it, and ends when the last one has left.
type flights struct {
	mu      sync.Mutex
	flights map[string]*flight
}

type flight struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	image   *Image
	err     error
}

func (f *flights) do(ctx context.Context, key string, work func(context.Context) (*Image, error)) (*Image, error) {
	f.mu.Lock()
	if f.flights == nil {
		f.flights = map[string]*flight{}
	}
	fl := f.flights[key]
	if fl == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		fl = &flight{done: make(chan struct{}), cancel: cancel}
		f.flights[key] = fl
		go func() {
			defer cancel()
			image, err := protect(own, work)
			f.mu.Lock()
			fl.image, fl.err = image, err
			f.remove(key, fl)
			f.mu.Unlock()
			close(fl.done)
		}()
	}
	fl.waiting++
	f.mu.Unlock()

	select {
	case <-fl.done:
		return fl.image, fl.err
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

// protect turns a panic over the content of an image into an error, so that
// one image cannot end the process.
func protect(ctx context.Context, work func(context.Context) (*Image, error)) (image *Image, err error) {
	defer func() {
		if r := recover(); r != nil {
			image, err = nil, failf(ReasonInvalidImage, "", "the image cannot be read: %v", r)
		}
	}()
	return work(ctx)
}

// remove lets the next caller begin anew; f.mu is held.
func (f *flights) remove(key string, fl *flight) {
	if f.flights[key] == fl {
		delete(f.flights, key)
	}
}
