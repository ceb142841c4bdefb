package imageconfigs

import (
	"errors"
	"sync"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// ErrNotRead is that ImageConfigs are read for the first time.
var ErrNotRead = errors.New("ImageConfigs are being read")

// Store keeps the policies of a cluster. Its zero value has none and does not know that there are none.
type Store struct {
	mu  sync.Mutex
	set *imagepolicy.Set
	key string
	// failure is why they could not be read; nil once they were.
	failure error
	known   bool
}

// Get returns the policies. Until they were read first its error is ErrNotRead, or why they cannot be.
func (s *Store) Get() (*imagepolicy.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.known:
		return s.set, nil
	case s.failure != nil:
		return nil, s.failure
	}
	return nil, ErrNotRead
}

// Put replaces the policies, and reports whether that changes what they say.
func (s *Store) Put(set *imagepolicy.Set) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := set.Key()
	changed = !s.known || key != s.key
	s.set, s.key, s.known, s.failure = set, key, true, nil
	return changed
}

// Fail records why policies cannot be read, and reports whether that changes what Get returns: those that were read stay.
func (s *Store) Fail(err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !s.known && (s.failure == nil || s.failure.Error() != err.Error())
	s.failure = err
	return changed
}
