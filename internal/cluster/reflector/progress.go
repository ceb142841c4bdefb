package reflector

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// ErrOld means that a list is older than the newest version known when it was requested.
var ErrOld = errors.New("a list is older than the states delivered before")

// Progress is the progress of the lists and watches of one kind. The caller locks it.
type Progress struct {
	// Newest is shared by kinds with a common sequence of resource versions; it may be nil.
	Newest *Newest
	// seen is the newest delivered resource version of this kind, and requested the newest of all
	// kinds when the last list was requested.
	seen, requested uint64
	// staleSince is the time of the first of several outdated lists.
	staleSince time.Time
}

// Newest is the newest delivered resource version of several kinds.
type Newest struct{ version atomic.Uint64 }

func (n *Newest) advance(v uint64) {
	for n != nil {
		if old := n.version.Load(); v <= old || n.version.CompareAndSwap(old, v) {
			return
		}
	}
}

// Request records that a list is requested, and returns the resource version to request instead of
// its argument: "", a consistent read, if another kind is further.
func (p *Progress) Request(version string) string {
	if p.Newest == nil {
		return version
	}
	p.requested = p.Newest.version.Load()
	if v, known := number(version); known && v < p.requested {
		return ""
	}
	return version
}

// Accept returns ErrOld if a list of this version must be requested again, because the API
// server is behind. If its lists stay old for limits.OldLists, it was restored from a backup.
// A version that is not a number is accepted.
func (p *Progress) Accept(version string) error {
	v, known := number(version)
	switch {
	case !known || v >= max(p.seen, p.requested):
	case p.staleSince.IsZero():
		p.staleSince = time.Now()
		return ErrOld
	case time.Since(p.staleSince) < limits.OldLists:
		return ErrOld
	}

	p.staleSince = time.Time{}
	return nil
}

// Restart records that a list of this version was accepted, and reports whether it is at
// least as new as every version seen.
func (p *Progress) Restart(version string) (ahead bool) {
	v, _ := number(version)
	ahead = v >= p.seen
	if p.Newest != nil && v < p.requested {
		p.Newest.version.CompareAndSwap(p.requested, v) // restored from a backup, with all kinds
	}
	p.Newest.advance(v)
	p.seen, p.requested = v, 0
	return ahead
}

// Advance records a version that a watch has delivered.
func (p *Progress) Advance(version string) {
	if v, known := number(version); known {
		p.seen = max(p.seen, v)
		p.Newest.advance(v)
	}
}

// Reached reports whether the watch has delivered this version or a later one.
func (p *Progress) Reached(version string) bool {
	v, known := number(version)
	return known && v <= p.seen
}

// number parses a resource version, which is a number by convention (KEP-5504).
func number(resourceVersion string) (uint64, bool) {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	return v, err == nil
}
