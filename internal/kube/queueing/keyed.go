package queueing

import "sync"

// Keyed runs functions, a number of them at a time for each key. What waits costs no goroutine. It is safe for
// concurrent use.
type Keyed struct {
	// Most functions of one key run at a time; zero means one.
	Most int

	mu     sync.Mutex
	queues map[string]*keyedQueue
}

type keyedQueue struct {
	running int
	waiting []func()
}

// Run calls f as soon as its key has capacity, in the order of the calls.
func (k *Keyed) Run(key string, f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.queues[key]
	if q == nil {
		if k.queues == nil {
			k.queues = map[string]*keyedQueue{}
		}
		q = &keyedQueue{}
		k.queues[key] = q
	}
	if q.running >= max(k.Most, 1) {
		q.waiting = append(q.waiting, f)
		return
	}
	q.running++
	go func() {
		for ; f != nil; f = k.next(key, q) {
			f()
		}
	}()
}

func (k *Keyed) next(key string, q *keyedQueue) func() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(q.waiting) == 0 {
		if q.running--; q.running == 0 {
			delete(k.queues, key)
		}
		return nil
	}
	f := q.waiting[0]
	q.waiting[0], q.waiting = nil, q.waiting[1:]
	return f
}

// Depth returns how many functions of a key run, and how many wait.
func (k *Keyed) Depth(key string) (running, waiting int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if q := k.queues[key]; q != nil {
		return q.running, len(q.waiting)
	}
	return 0, 0
}
