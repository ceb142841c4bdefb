package targets

import "sync"

// account is the memory that all targets have together. Every namespace may take as much as it leaves free: one alone half
// of it, two a third each, so that there is always some left for the next one. It is safe for concurrent use.
type account struct {
	mu   sync.Mutex
	free int64
	used map[string]int64 // by namespace
}

// newAccount returns an account of so many bytes; nil, which takes everything, for 0.
func newAccount(total int64) *account {
	if total == 0 {
		return nil
	}
	return &account{free: total, used: map[string]int64{}}
}

// take takes bytes for a namespace, and reports false where it may not have them.
func (a *account) take(namespace string, bytes int64) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used[namespace]+bytes > a.free-bytes {
		return false
	}
	a.used[namespace] += bytes
	a.free -= bytes
	return true
}

// give gives bytes back.
func (a *account) give(namespace string, bytes int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free += bytes
	if a.used[namespace] -= bytes; a.used[namespace] == 0 {
		delete(a.used, namespace)
	}
}

// holding is what one session has taken from the account.
type holding struct {
	account   *account
	namespace string

	mu    sync.Mutex
	bytes int64
	ended bool
}

// change takes bytes, or gives some back where they are negative. It reports false where the namespace may not have them.
func (h *holding) change(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return true
	case bytes > 0 && !h.account.take(h.namespace, bytes):
		return false
	case bytes < 0:
		h.account.give(h.namespace, -bytes)
	}
	h.bytes += bytes
	return true
}

// end gives everything back.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.account.give(h.namespace, h.bytes)
	}
	h.ended, h.bytes = true, 0
}
