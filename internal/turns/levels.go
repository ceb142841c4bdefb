package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Levels share processors between pieces of work of which nobody knows beforehand how
// long they take: a multilevel feedback queue. Work begins at the first level. What
// takes longer than a level allows goes on at the next one where that has room; else it
// is given up and done anew there, so that what waits holds no memory. So work waits
// for what takes as long as itself, and never for what takes much longer.
type Levels []*level

type level struct {
	room *semaphore.Weighted
	// most is how long work may stay; zero means for ever.
	most time.Duration
}

// LaterError is that work was given up, to be done anew at a level.
type LaterError struct{ Level int }

// Error names the level.
func (e *LaterError) Error() string {
	return fmt.Sprintf("the work takes long, and is to be done at level %d", e.Level)
}

// Later returns the level at which work is to be done anew that ended with err.
func Later(err error) (level int, ok bool) {
	var later *LaterError
	if !errors.As(err, &later) {
		return 0, false
	}
	return later.Level, true
}

// NewLevels returns a level for each of the times and one for what takes longer. The
// first has room for so many at a time, each other one for one.
func NewLevels(first int64, most ...time.Duration) Levels {
	levels := make(Levels, len(most)+1)
	for i := range levels {
		levels[i] = &level{room: semaphore.NewWeighted(1)}
		if i < len(most) {
			levels[i].most = most[i]
		}
	}
	levels[0].room = semaphore.NewWeighted(first)
	return levels
}

// Do performs work as soon as a level has room for it. Where the work is given up its
// context ends, and the error is a *LaterError if the work returns the cause of that.
func (l Levels) Do(ctx context.Context, at int, work func(context.Context) error) error {
	if err := l[at].room.Acquire(ctx, 1); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &stay{levels: l, at: at, cancel: cancel}
	s.begin()
	defer s.end()
	return work(ctx)
}

// stay is a piece of work at its level.
type stay struct {
	levels Levels
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	at    int
	over  bool
	timer *time.Timer
}

func (s *stay) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arm()
}

// arm has the work leave its level in time. It is called with mu held.
func (s *stay) arm() {
	if most := s.levels[s.at].most; most > 0 {
		s.timer = time.AfterFunc(most, s.leave)
	}
}

// leave takes the work to the next level, or gives it up.
func (s *stay) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.levels[s.at].room.Release(1)
	if s.at++; s.levels[s.at].room.TryAcquire(1) {
		s.arm()
		return
	}
	// It may take a moment to notice: meanwhile it holds up nobody.
	s.over = true
	s.cancel(&LaterError{Level: s.at})
}

func (s *stay) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.levels[s.at].room.Release(1)
}
