package imageconfigs

import (
	"errors"
	"sync"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// ErrNotRead means that ImageConfigs have not been read yet.
var ErrNotRead = errors.New("ImageConfigs are being read")

// Store keeps the policies of a cluster. Its zero value does not know them yet, which is not the
// same as knowing that there are none.
type Store struct {
	mu  sync.Mutex
	set *imagepolicy.Set
	key string
	// failure is why the first read failed; nil after a success.
	failure error
	known   bool
}

// Get returns the policies. Before the first successful read, it returns ErrNotRead or the reason
// for the failure.
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

// Put replaces the policies, and reports whether they differ.
func (s *Store) Put(set *imagepolicy.Set) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := set.Key()
	changed = !s.known || key != s.key
	s.set, s.key, s.known, s.failure = set, key, true, nil
	return changed
}

// Fail records why policies cannot be read, and reports whether this changes the result of Get. It
// keeps policies that were read before.
func (s *Store) Fail(err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !s.known && (s.failure == nil || s.failure.Error() != err.Error())
	s.failure = err
	return changed
}
