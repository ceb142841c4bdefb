package watches

import (
	"sync"
	"time"
)

const pageCatalogueAge = 30 * time.Second // of a comparison that is shown again

// reading is a value that is read again where a page asks for it: at most once in pageCatalogueAge, and for a tenth of the time.
type reading[T any] struct {
	mu      sync.Mutex
	shown   T
	next    time.Time
	running chan struct{}
}

// last is the last result.
func (r *reading[T]) last() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown
}

// refresh reads again if it is time to. The channel is closed at the end of the read; it is nil where there is none.
func (r *reading[T]) refresh(t *topic, read func() T) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begin := time.Now(); r.running == nil && !begin.Before(r.next) {
		done := make(chan struct{})
		r.running = done
		go func() {
			shown := read()
			r.mu.Lock()
			r.shown, r.running, r.next = shown, nil, begin.Add(max(pageCatalogueAge, 10*time.Since(begin)))
			r.mu.Unlock()
			close(done)
			t.publish()
		}()
	}
	return r.running
}
