package intern

import "unsafe"

// slabBytes is the size of a piece of a Slab: that of the pages which Go hands out for
// small values of one size. A single value that is held keeps as much from being given
// back without a slab.
const slabBytes = 8 << 10

// Slab places values that are made one after the other beside each other. Values that
// live for long take no room among short-lived ones then, whose place nobody else could
// use. It is for those that are let go in about the order in which they were made, as a
// piece is free when none of its values is held. The zero Slab is ready for use, by one
// goroutine at a time.
type Slab[T any] struct{ free []T }

// Put returns a place for value that nobody else has.
func (s *Slab[T]) Put(value T) *T { return &s.All([]T{value})[0] }

// All returns a place for values that nobody else has.
func (s *Slab[T]) All(values []T) []T {
	n := len(values)
	if n == 0 {
		return nil
	}
	if len(s.free) < n {
		var one T
		s.free = make([]T, max(n, slabBytes/max(1, int(unsafe.Sizeof(one)))))
	}
	place := s.free[:n:n]
	s.free = s.free[n:]
	copy(place, values)
	return place
}

// TextSlab is a Slab of texts.
type TextSlab struct{ bytes Slab[byte] }

// Put returns an equal text that has its own place.
func (s *TextSlab) Put(text string) string {
	place := s.bytes.All(unsafe.Slice(unsafe.StringData(text), len(text)))
	return unsafe.String(unsafe.SliceData(place), len(place))
}
