package queueing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Levels are a multilevel feedback queue for work of unknown duration. Work begins at the
// first level. What exceeds the time of its level moves to the next one if that has
// capacity; else it is cancelled, to be repeated there, so that waiting work holds no
// memory. So short work never waits for long work.
type Levels []*level

type level struct {
	room *semaphore.Weighted
	// most is how long work may take at this level; zero means unlimited.
	most time.Duration
}

// LaterError means that work was cancelled, to be repeated at a level.
type LaterError struct{ Level int }

// Error names the level.
func (e *LaterError) Error() string {
	return fmt.Sprintf("the work takes long, and is to be done at level %d", e.Level)
}

// Later returns the level at which work that ended with err is to be repeated.
func Later(err error) (level int, ok bool) {
	var later *LaterError
	if !errors.As(err, &later) {
		return 0, false
	}
	return later.Level, true
}

// NewLevels returns a level for each time limit, and an unlimited one. The first has the
// given capacity, the others have one of 1.
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

// Do performs work when its level has capacity. Work that exceeds its time is cancelled
// with a *LaterError as the cause, which it should return.
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

// arm starts the timer of the level. mu is held.
func (s *stay) arm() {
	if most := s.levels[s.at].most; most > 0 {
		s.timer = time.AfterFunc(most, s.leave)
	}
}

// leave moves the work to the next level, or cancels it.
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
	// It holds no capacity until it returns.
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
