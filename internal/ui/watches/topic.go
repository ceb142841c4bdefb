package watches

import "sync"

// topic notifies subscribers of changes. Changes before the next read become one.
type topic struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]bool
}

// subscribe returns a channel for notifications, and a function that ends the subscription.
func (t *topic) subscribe() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subscribers == nil {
		t.subscribers = map[chan struct{}]bool{}
	}
	t.subscribers[ch] = true

	return ch, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subscribers, ch)
	}
}

// publish notifies all subscribers. A subscriber that has not read the last notification gets no
// second one.
func (t *topic) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ch := range t.subscribers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
