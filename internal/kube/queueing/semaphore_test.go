package queueing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// acquired records the order of acquisitions.
type acquired struct {
	t      *testing.T
	shares *Semaphore
	names  []string
	holds  map[string]func()
}

func (a *acquired) begin(ctx context.Context, namespace, name string, n int64) {
	go func() {
		release, err := a.shares.Acquire(ctx, namespace, n)
		if err != nil {
			return
		}
		a.names = append(a.names, name) // one at a time: each start and release is awaited
		a.holds[name] = release
	}()
	synctest.Wait()
}

func (a *acquired) release(name string) {
	a.holds[name]()
	synctest.Wait()
}

func (a *acquired) want(reason string, names ...string) {
	a.t.Helper()
	if !slices.Equal(a.names, names) {
		a.t.Errorf("%s: %v, want %v", reason, a.names, names)
	}
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &acquired{t: t, shares: NewSemaphore(4, 4), holds: map[string]func(){}}
		a.begin(t.Context(), "many", "m1", 4)
		for i := 2; i <= 4; i++ {
			a.begin(t.Context(), "many", fmt.Sprintf("m%d", i), 4)
		}
		a.begin(t.Context(), "few", "f1", 1)
		a.begin(t.Context(), "few", "f2", 9) // counts as the whole capacity
		a.want("others wait", "m1")
		a.release("m1")
		a.want("the one that waited first has the turn", "m1", "m2")
		a.release("m2")
		a.want("then the other namespace has, and free capacity is reserved for the next", "m1", "m2", "f1")
		if _, ok := a.shares.TryAcquire("", 1); ok {
			t.Error("a TryAcquire precedes the waiters")
		}
		a.release("f1")
		a.want("in turn", "m1", "m2", "f1", "m3")
		a.release("m3")
		a.want("the whole capacity is never too little", "m1", "m2", "f1", "m3", "f2")
		a.holds["f2"]()
		a.release("f2") // again
		a.want("released once", "m1", "m2", "f1", "m3", "f2", "m4")
		a.release("m4")
		if release, ok := a.shares.TryAcquire("", 4); !ok {
			t.Error("something is not released")
		} else {
			release()
		}
	})
}

func TestSemaphoreOfThoseWhoGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &acquired{t: t, shares: NewSemaphore(2, 2), holds: map[string]func(){}}
		a.begin(t.Context(), "a", "a1", 1)
		cause := errors.New("deleted")
		ctx, cancel := context.WithCancelCause(t.Context())
		a.begin(ctx, "b", "large", 2)
		a.begin(t.Context(), "c", "c1", 1)
		a.want("the large one has its turn", "a1")
		cancel(cause)
		synctest.Wait()
		a.want("the turn passes on", "a1", "c1")
		if _, err := a.shares.Acquire(ctx, "b", 2); !errors.Is(err, cause) {
			t.Errorf("it ends with %v", err)
		}
		a.release("a1")
		a.release("c1")
		if a.shares.used != 0 || len(a.shares.waiting.order) > 0 || len(a.shares.waiting.waiting) > 0 {
			t.Errorf("%d are used, %v wait", a.shares.used, a.shares.waiting.order)
		}
	})
}

// Regardless of the demand of one namespace, another one only waits for the running piece, and for
// one of each waiting namespace.
func TestSemaphoreIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shares := NewSemaphore(1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		use := func(namespace string) time.Duration {
			began := time.Now()
			release, err := shares.Acquire(ctx, namespace, 1)
			if err != nil {
				return 0 // the test is over
			}
			defer release()
			waited := time.Since(began)
			time.Sleep(time.Second)
			return waited
		}
		for range 1000 {
			go use("flood")
		}
		synctest.Wait()
		for range 3 {
			if waited := use("other"); waited == 0 || waited > 2*time.Second {
				t.Errorf("it waited for %s", waited)
			}
		}
		cancel()
		time.Sleep(time.Second)
	})
}
