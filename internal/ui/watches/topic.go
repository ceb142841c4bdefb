package watches

import "sync"

// topic notifies subscribers of changes. Changes before the next read become one.
type topic struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]bool
}

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
