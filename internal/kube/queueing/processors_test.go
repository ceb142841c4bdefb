package queueing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// Work of one namespace that takes long lets others use the processor, and goes on after them.
func TestProcessors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		processors, began := NewProcessors(1), time.Now()
		// compute takes so long, and returns when it has ended.
		compute := func(namespace string, takes time.Duration) time.Duration {
			ctx, leave, err := processors.Enter(t.Context(), namespace)
			if err != nil {
				t.Error(err)
			}
			defer leave()
			for ; takes > 0; takes -= time.Millisecond {
				time.Sleep(time.Millisecond)
				Yield(ctx)
			}
			return time.Since(began)
		}
		ended := make(chan time.Duration, 2)
		for range 2 {
			go func() { ended <- compute("long", time.Second) }()
		}
		synctest.Wait()
		if took := compute("short", time.Millisecond); took > 3*limits.ProcessorTime {
			t.Errorf("short work of another namespace took %s", took)
		}
		<-ended
		if took := <-ended; took < 2*time.Second || took > 2*time.Second+limits.ProcessorTime {
			t.Errorf("all of it took %s", took)
		}
	})
}

// Who waits for something else uses no processor, and who waits for one ends with its context. A panic leaves none used.
func TestIdleProcessors(t *testing.T) {
	t.Parallel()
	processors := NewProcessors(0)
	ctx, leave, err := processors.Enter(t.Context(), "a")
	require.NoError(t, err)
	enter := func() { // within the time of the test
		_, other, err := processors.Enter(t.Context(), "b")
		require.NoError(t, err)
		other()
	}
	Idle(ctx, enter)
	func() {
		defer func() { _ = recover() }()
		Idle(ctx, func() { panic("defect") })
	}()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := processors.Enter(done, "b"); err == nil {
		t.Error("a processor is used twice")
	}
	leave()
	enter()
	Yield(t.Context())
	Idle(t.Context(), enter)
	within, leave, err := (*Processors)(nil).Enter(t.Context(), "a")
	if err != nil || within != t.Context() {
		t.Error("the nil Processors are limited")
	}
	leave()
}
