package queueing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// try performs work of the given duration, and returns the level at which it ended.
func try(ctx context.Context, l Levels, takes time.Duration) (level int, err error) {
	for {
		err := l.Do(ctx, "team", level, func(ctx context.Context) error {
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		next, deferred := Deferred(err)
		if !deferred {
			return level, err
		}
		level = next
	}
}

// TestLevels: short work never waits for long work, and all of it ends.
func TestLevels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLevels(2, time.Second, 10*time.Second)
		began := time.Now()
		ended := make(chan time.Duration, 100)
		add := func(n int, takes time.Duration) {
			for range n {
				go func() {
					if _, err := try(t.Context(), l, takes); err != nil {
						t.Error(err)
					}
					ended <- time.Since(began)
				}()
			}
			synctest.Wait()
		}
		add(6, time.Minute)
		add(1, 500*time.Millisecond)
		add(1, 5*time.Second)
		for i, most := range []time.Duration{
			// Behind three pairs of a second each.
			3500 * time.Millisecond,
			// Behind one at a time of ten seconds.
			75 * time.Second,
			72 * time.Second, 0, 0, 0, 0, 7 * time.Minute,
		} {
			if got := <-ended; most > 0 && got > most {
				t.Errorf("number %d ends after %s, want %s at most", i+1, got, most)
			}
		}
	})
}

// TestLevelsWithRoom: no work is cancelled while there is capacity.
func TestLevelsWithRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLevels(1, time.Second, 10*time.Second)
		for range 3 {
			began := time.Now()
			if level, err := try(t.Context(), l, time.Minute); level != 0 || err != nil || time.Since(began) != time.Minute {
				t.Errorf("it ends at level %d after %s: %v", level, time.Since(began), err)
			}
		}
	})
}

// TestLevelsDoNotWaitForWorkThatIgnoresItsContext: work that was cancelled holds no
// capacity until it returns.
func TestLevelsDoNotWaitForWorkThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLevels(1, time.Second)
		go func() { _, _ = try(t.Context(), l, time.Hour) }() // takes the last level
		synctest.Wait()
		time.Sleep(2 * time.Second)
		deaf := make(chan error)
		go func() {
			deaf <- l.Do(t.Context(), "team", 0, func(context.Context) error { time.Sleep(time.Minute); return nil })
		}()
		synctest.Wait()
		began := time.Now()
		if level, err := try(t.Context(), l, 0); level != 0 || err != nil || time.Since(began) != time.Second {
			t.Errorf("it ends at level %d after %s: %v", level, time.Since(began), err)
		}
		if err := <-deaf; err != nil {
			t.Errorf("work done in spite of the end counts: %v", err)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestLevelsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	l := NewLevels(1, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if _, err := try(ctx, l, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := try(t.Context(), l, 0); err != nil {
		t.Errorf("there is no room any more: %v", err)
	}
}
