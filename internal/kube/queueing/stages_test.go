package queueing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lockstep.run/lockstep/test/require"
)

// Long work delays other namespaces' short work by at most the time for short work, and is asked to
// repeat.
func TestStages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStages(1, 2, time.Second)
		work := func(namespace string, long bool, takes time.Duration) (waited time.Duration, err error) {
			asked := time.Now()
			ctx, leave, err := s.Enter(t.Context(), namespace, long)
			require.NoError(t, err)
			defer leave()
			waited = time.Since(asked)
			select {
			case <-time.After(takes):
				return waited, nil
			case <-ctx.Done():
				return waited, context.Cause(ctx)
			}
		}
		for range 3 {
			go func() {
				if _, err := work("long", false, time.Hour); !errors.Is(err, ErrLong) {
					t.Errorf("it ends with %v", err)
				}
				if _, err := work("long", true, time.Hour); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		for range 3 {
			if waited, err := work("short", false, time.Millisecond); err != nil || waited > 2*time.Second { // for the running one, and one that waits
				t.Errorf("it waited for %s: %v", waited, err)
			}
		}
		time.Sleep(time.Minute)
		if waited, err := work("other", true, time.Hour); err != nil || waited > 0 {
			t.Errorf("the long work of another namespace waited for %s: %v", waited, err)
		}
		time.Sleep(2 * time.Hour)
	})
}
