package queueing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Levels are a multilevel feedback queue for work of unknown duration: short work never
// waits for long work, and namespaces have their turns at each level. Work that exceeds the time of its level moves to the next one if
// that has capacity; else it is cancelled, to be repeated there, as waiting work would
// hold memory.
type Levels []*level

type level struct {
	capacity *Semaphore
	// most is how long work may take at this level; zero means unlimited.
	most time.Duration
}

// DeferredError means that work was cancelled, to be repeated at a level.
type DeferredError struct{ Level int }

// Error names the level.
func (e *DeferredError) Error() string {
	return fmt.Sprintf("the work takes long, and is to be done at level %d", e.Level)
}

// Deferred returns the level at which work that ended with err is to be repeated.
func Deferred(err error) (level int, ok bool) {
	var deferred *DeferredError
	if !errors.As(err, &deferred) {
		return 0, false
	}
	return deferred.Level, true
}

// NewLevels returns a level for each time limit, and an unlimited one. The first has the
// given capacity, the others have one of 1.
func NewLevels(first int64, most ...time.Duration) Levels {
	levels := make(Levels, len(most)+1)
	for i := range levels {
		levels[i] = &level{capacity: NewSemaphore(1, 1)}
		if i < len(most) {
			levels[i].most = most[i]
		}
	}
	levels[0].capacity = NewSemaphore(first, first)
	return levels
}

// Do performs work when its level has capacity. Work that exceeds its time is cancelled
// with a *DeferredError as the cause, which it should return.
func (l Levels) Do(ctx context.Context, namespace string, at int, work func(context.Context) error) error {
	ctx, leave, err := l.Enter(ctx, namespace, at)
	if err != nil {
		return err
	}
	defer leave()
	return work(ctx)
}

// Last returns the level without a time limit.
func (l Levels) Last() int { return len(l) - 1 }

// Enter waits until a level has capacity for work, which holds it until leave is called, as
// in Do. The work is to be done with the context returned.
func (l Levels) Enter(ctx context.Context, namespace string, at int) (within context.Context, leave func(), err error) {
	release, err := l[at].capacity.Acquire(ctx, namespace, 1)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &slot{levels: l, at: at, release: release, cancel: cancel}
	s.begin()
	return ctx, func() {
		s.end()
		cancel(nil)
	}, nil
}

// slot is the capacity that one piece of work holds.
type slot struct {
	levels Levels
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	at      int
	release func()
	over    bool
	timer   *time.Timer
}

func (s *slot) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arm()
}

// arm starts the timer of the level. mu is held.
func (s *slot) arm() {
	if most := s.levels[s.at].most; most > 0 {
		s.timer = panics.After(most, "moving work to another level", s.leave)
	}
}

// leave moves the work to the next level, or cancels it.
func (s *slot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.release()
	s.at++
	var ok bool
	if s.release, ok = s.levels[s.at].capacity.TryAcquire("", 1); ok {
		s.arm()
		return
	}
	// It holds no capacity until it returns.
	s.over = true
	s.cancel(&DeferredError{Level: s.at})
}

func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.release()
}
