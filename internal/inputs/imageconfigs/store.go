package imageconfigs

import (
	"sync"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Store keeps the policies of a cluster. Its zero value has none and does not know that there are none.
type Store struct {
	mu    sync.Mutex
	set   *imagepolicy.Set
	key   string
	known bool
}

// Get returns the policies; known is false until they were read first.
func (s *Store) Get() (set *imagepolicy.Set, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set, s.known
}

// Put replaces the policies, and reports whether that changes what they say.
func (s *Store) Put(set *imagepolicy.Set) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := set.Key()
	changed = !s.known || key != s.key
	s.set, s.key, s.known = set, key, true
	return changed
}
