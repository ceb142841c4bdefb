package targets

import (
	"sync"

	"lockstep.run/lockstep/internal/kube/quota"
)

// holding is the memory of one session in the account of all targets. It is safe for concurrent
// use.
type holding struct {
	memory *quota.Memory
	key    quota.Key

	mu    sync.Mutex
	bytes int64
	ended bool
}

// change takes bytes, or returns some if bytes is negative. It returns false if the namespace has
// used up its share.
func (h *holding) change(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return true
	}
	if h.memory.Hold(h.key, h.bytes+bytes) != nil {
		return false
	}
	h.bytes += bytes
	return true
}

// end returns everything.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.memory.Count(h.key, 0)
	}
	h.ended, h.bytes = true, 0
}
