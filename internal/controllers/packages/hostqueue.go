package packages

import (
	"sync"

	"lockstep.run/lockstep/internal/limits"
)

// hostQueues run functions, limits.LoadsPerHost at a time for each registry. What waits costs no goroutine.
type hostQueues struct {
	mu     sync.Mutex
	queues map[string]*hostQueue
}

type hostQueue struct {
	running int
	waiting []func()
}

// run calls f as soon as its registry has capacity.
func (h *hostQueues) run(host string, f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.queues[host]
	if q == nil {
		if h.queues == nil {
			h.queues = map[string]*hostQueue{}
		}
		q = &hostQueue{}
		h.queues[host] = q
	}
	if q.running >= limits.LoadsPerHost {
		q.waiting = append(q.waiting, f)
		return
	}
	q.running++
	go func() {
		for ; f != nil; f = h.next(host, q) {
			f()
		}
	}()
}

func (h *hostQueues) next(host string, q *hostQueue) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(q.waiting) == 0 {
		if q.running--; q.running == 0 {
			delete(h.queues, host)
		}
		return nil
	}
	f := q.waiting[0]
	q.waiting[0], q.waiting = nil, q.waiting[1:]
	return f
}
