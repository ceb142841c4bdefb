package queueing

import (
	"context"
	"sync"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Keyed runs functions, a number of them at a time for each key, of which each namespace has its share and its turn. What waits
// costs no goroutine. It is safe for concurrent use.
type Keyed struct {
	// Most functions of one key run at a time; zero means one.
	Most int
	// Share is how many of these may be of one namespace; zero means all.
	Share int

	mu     sync.Mutex
	queues map[string]*keyedQueue
	// idle is signalled when nothing runs; nil without a waiter.
	idle *sync.Cond
}

type keyedQueue struct {
	running int
	// of counts those of each namespace.
	of      map[string]int
	waiting Turns[func()]
}

// Run calls f as soon as its key has capacity: in the order of the calls within a namespace, and in turn with other namespaces.
func (k *Keyed) Run(key, namespace string, f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.queues[key]
	if q == nil {
		if k.queues == nil {
			k.queues = map[string]*keyedQueue{}
		}
		q = &keyedQueue{of: map[string]int{}}
		k.queues[key] = q
	}
	q.waiting.Push(namespace, f)
	k.start(key, q)
}

// start starts what there is capacity for. mu is held.
func (k *Keyed) start(key string, q *keyedQueue) {
	for q.running < max(k.Most, 1) {
		at := q.waiting.Next(func(namespace string) bool { return k.Share == 0 || q.of[namespace] < k.Share })
		if at < 0 {
			break
		}
		f, namespace := q.waiting.Take(at)
		q.running++
		q.of[namespace]++
		panics.Go(context.Background(), "work for "+key, func() {
			defer k.done(key, namespace, q)
			f()
		})
	}
	if q.running == 0 {
		delete(k.queues, key)
	}
	if len(k.queues) == 0 && k.idle != nil {
		k.idle.Broadcast()
	}
}

// Wait waits until no function runs, and none waits.
func (k *Keyed) Wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle == nil {
		k.idle = sync.NewCond(&k.mu)
	}
	for len(k.queues) > 0 {
		k.idle.Wait()
	}
}

func (k *Keyed) done(key, namespace string, q *keyedQueue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q.running--
	if q.of[namespace]--; q.of[namespace] == 0 {
		delete(q.of, namespace)
	}
	k.start(key, q)
}

// Depth returns how many functions of a key run, and how many wait.
func (k *Keyed) Depth(key string) (running, waiting int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if q := k.queues[key]; q != nil {
		return q.running, q.waiting.count
	}
	return 0, 0
}
