package intern

import (
	"bytes"
	"hash/maphash"
	"sync"
	"unsafe"
	"weak"
)

// contents are those of all objects in sets and deployments.
var contents Bytes

// Content returns the slice with this content that was asked for first in this
// process and is still held, or one like it. Nobody may change it from now on.
func Content(b []byte) []byte { return contents.Of(b) }

// least is from what length bytes are shared: shorter ones are not worth an entry.
const least = 64

// most is up to what length bytes are placed beside each other: a larger content takes
// most of some pages by itself.
const most = slabBytes / 8

// Bytes knows byte slices that somebody holds, and places them beside each other: they
// live long, and each would keep a page from being given back. The zero Bytes is ready
// for use, also by several goroutines.
type Bytes struct {
	mu    sync.Mutex
	slab  Slab[byte]
	seed  maphash.Seed
	known map[uint64]held
	// room is how many entries there may be before those are dropped that nobody
	// holds any more.
	room int
}

// held is a slice, for as long as another holds it.
type held struct {
	first  weak.Pointer[byte]
	length int
}

func (h held) get() []byte {
	if first := h.first.Value(); first != nil {
		return unsafe.Slice(first, h.length)
	}
	return nil
}

// Of returns the slice with this content that was asked for first and is still
// held; where there is none, a copy of b, or b itself. Nobody may change it from now on.
func (s *Bytes) Of(b []byte) []byte {
	if len(b) < least {
		return b
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.seed, s.known, s.room = maphash.MakeSeed(), map[uint64]held{}, 1024
	}
	sum := maphash.Bytes(s.seed, b)
	if known := s.known[sum].get(); known != nil {
		if bytes.Equal(known, b) {
			return known
		}
		return b // two contents of one sum
	}
	s.sweep()
	if len(b) <= most {
		b = s.slab.All(b)
	}
	s.known[sum] = held{first: weak.Make(unsafe.SliceData(b)), length: len(b)}
	return b
}

// sweep drops the entries that nobody holds, each time that there may be as many of
// them as of others.
func (s *Bytes) sweep() {
	if len(s.known) < s.room {
		return
	}
	for sum, h := range s.known {
		if h.get() == nil {
			delete(s.known, sum)
		}
	}
	s.room = max(1024, 2*len(s.known))
}
