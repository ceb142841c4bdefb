package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// task is the duration of one task in the fake time of these tests.
const task = time.Millisecond

func owner(namespace, name string) objects.OwnerKey {
	return objects.OwnerKey{Kind: "ObjectDeployment", Namespace: namespace, Name: name}
}

func sleep(int) { time.Sleep(task) }

// Slow work that continues is reported as progress, because its worker is not stuck.
func TestPoolTellsOfProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := &queueing.Queue[objects.OwnerKey]{}
		requests := queue.Fair(0, nil)("", workqueue.DefaultTypedControllerRateLimiter[objects.OwnerKey]())
		defer requests.ShutDown()
		requests.Add(owner("team", "web"))
		request, _ := requests.Get()
		alive := queue.Check("deployments", logr.Discard(), time.Now)
		ctx := queue.WithProgress(t.Context(), request)
		engine.NewPool(2, 2).Run(ctx, request, false, 40, func(int) {
			time.Sleep(30 * time.Second)
			if err := alive(nil); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(limits.WorkerHung + time.Second)
		if alive(nil) == nil {
			t.Error("a worker that stopped is not noticed")
		}
	})
}

func TestPoolRunsBackgroundWorkWhileNothingElseWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := engine.NewPool(4, 4)
		var wg sync.WaitGroup
		var urgent, late atomic.Int32
		wg.Go(func() {
			pool.Run(t.Context(), owner("team", "labels"), true, 1_000, func(int) {
				if urgent.Load() > 4 { // more than the places that it may be running in
					late.Add(1)
				}
				time.Sleep(task)
			})
		})
		time.Sleep(10*task + task/2)
		wg.Go(func() {
			urgent.Store(100)
			asked := time.Now()
			pool.Run(t.Context(), owner("team", "rollout"), false, 100, func(int) { time.Sleep(task); urgent.Add(-1) })
			if took := time.Since(asked); took > 100*task/4+2*task {
				t.Errorf("100 urgent tasks took %s behind background work", took)
			}
		})
		wg.Wait()
		if n := late.Load(); n > 0 {
			t.Errorf("%d background tasks started while others waited", n)
		}
	})
}

func TestPoolDropsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := engine.NewPool(2, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var began atomic.Int32
		go func() {
			time.Sleep(3*task + task/2)
			cancel()
		}()
		asked := time.Now()
		pool.Run(ctx, owner("team", "owner"), false, 1_000, func(int) { began.Add(1); time.Sleep(task) })
		require.Equal(t, int32(8), began.Load(), "tasks started")
		require.Equal(t, 4*task, time.Since(asked), "it returned after")
		done := false
		pool.Run(t.Context(), owner("team", "owner"), false, 1, func(int) { done = true })
		if !done {
			t.Error("the pool has lost its places")
		}
	})
}

// A namespace with a thousand owners does not hold up one with a single owner, and its slow tasks
// leave places to others.
func TestPoolServesNamespacesInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := engine.NewPool(4, 3)
		var wg sync.WaitGroup
		for o := range 1_000 {
			wg.Go(func() { pool.Run(t.Context(), owner("flood", fmt.Sprint(o)), false, 10, sleep) })
		}
		time.Sleep(10*task + task/2)
		asked := time.Now()
		pool.Run(t.Context(), owner("team", "small"), false, 8, sleep)
		if took := time.Since(asked); took > 8*task {
			t.Errorf("8 tasks along with 1,000 owners of another namespace took %s", took)
		}
		wg.Wait()
		wg.Go(func() {
			pool.Run(t.Context(), owner("slow", "webhook"), false, 20, func(int) { time.Sleep(time.Minute) })
		})
		time.Sleep(task)
		asked = time.Now()
		pool.Run(t.Context(), owner("team", "small"), false, 8, sleep)
		if took := time.Since(asked); took > 8*task {
			t.Errorf("8 tasks along with slow ones of another namespace took %s", took)
		}
		wg.Wait()
	})
}
