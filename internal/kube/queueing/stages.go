package queueing

import (
	"context"
	"errors"
	"time"
)

// Stages keep short work from waiting for long work, although the length is not known in advance.
// All work starts as short work. If it takes longer, it is cancelled, because it would hold memory
// while it waits, and is repeated as long work.
type Stages struct {
	short, long *Semaphore
	most        time.Duration
}

// ErrLong is the cause of the end of work that takes longer than short work can.
var ErrLong = errors.New("the work takes long, and is to be repeated as such")

// NewStages returns stages with so many places for short work, which takes at most so long, and for
// long work, one per namespace.
func NewStages(short, long int64, most time.Duration) *Stages {
	return &Stages{short: NewSemaphore(short, short), long: NewSemaphore(long, 1), most: most}
}

// Enter waits for a place, which is held until leave is called. The work has to use the returned
// context.
func (s *Stages) Enter(ctx context.Context, namespace string, long bool) (within context.Context, leave func(), err error) {
	places := s.short
	if long {
		places = s.long
	}
	release, err := places.Acquire(ctx, namespace, 1)
	if err != nil || long {
		return ctx, release, err
	}

	within, cancel := context.WithTimeoutCause(ctx, s.most, ErrLong)
	return within, func() {
		cancel()
		release()
	}, nil
}
