package queueing

import "sync"

// Keyed has a Semaphore for each key in use, such as a host. It is safe for concurrent use.
type Keyed struct {
	// Most functions of one key run at a time, at most Share of them of one namespace.
	Most, Share int64

	mu   sync.Mutex
	keys map[string]*keyed
	// idle is signalled if no function runs or waits.
	idle sync.Cond
}

type keyed struct {
	*Semaphore
	users int
}

// Run calls f on a goroutine of its own as soon as its key has capacity.
func (k *Keyed) Run(key, namespace string, f func()) {
	k.mu.Lock()
	one := k.keys[key]
	if one == nil {
		if k.keys == nil {
			k.keys = map[string]*keyed{}
		}
		one = &keyed{Semaphore: NewSemaphore(k.Most, k.Share)}
		k.keys[key] = one
	}

	one.users++
	k.mu.Unlock()
	one.Start(namespace, "work for "+key, false, 1, func() {
		defer k.done(key, one)
		f()
	})
}

func (k *Keyed) done(key string, one *keyed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(k.keys, key)
	}
	if len(k.keys) == 0 && k.idle.L != nil {
		k.idle.Broadcast()
	}
}

// Wait waits until no function runs or waits.
func (k *Keyed) Wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle.L = &k.mu
	for len(k.keys) > 0 {
		k.idle.Wait()
	}
}

// Depth returns how many functions of a key run, and how many wait.
func (k *Keyed) Depth(key string) (running, waiting int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.keys[key]; one != nil {
		return one.Semaphore.Depth()
	}
	return 0, 0
}
