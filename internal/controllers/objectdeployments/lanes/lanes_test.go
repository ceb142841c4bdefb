package lanes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// TestLanes: owners of a target that hangs hold up each other, and no other owner. An owner runs
// once at a time, again if it changed meanwhile, and after errors and pauses.
func TestLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owner := func(name string) objects.OwnerKey { return objects.OwnerKey{Kind: "ObjectDeployment", Name: name} }
		var mu sync.Mutex
		runs, results := map[string]int{}, map[string]error{"fails": errors.New("no")}
		hang := make(chan struct{})
		var l *Lanes
		l = New(func(_ context.Context, key objects.OwnerKey) (reconcile.Result, error) {
			mu.Lock()
			runs[key.Name]++
			n, err := runs[key.Name], results[key.Name]
			mu.Unlock()
			switch {
			case key.Name[0] == 'h':
				<-hang
			case key.Name == "pauses" && n == 1:
				return reconcile.Result{RequeueAfter: time.Minute}, nil
			case key.Name == "panics" && n == 1:
				panic("no")
			case key.Name == "fails" && n == 3:
				err = nil
			}
			return reconcile.Result{}, err
		}, func(key objects.OwnerKey, after time.Duration) {
			lane := "fast"
			if key.Name[0] == 'h' {
				lane = "slow"
			}
			time.AfterFunc(after, func() { l.Add(t.Context(), lane, key) })
		})
		ran := func() (all []string) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for name := range runs {
				all = append(all, name)
			}
			slices.Sort(all)
			return all
		}
		for _, name := range []string{"h1", "h2", "h3", "h4", "h5", "h6"} {
			l.Add(t.Context(), "slow", owner(name))
			l.Add(t.Context(), "slow", owner(name))
		}
		if got := ran(); len(got) != workers {
			t.Errorf("%v run in a lane of %d", got, workers)
		}
		l.Add(t.Context(), "slow", owner("h1")) // it changed while it runs
		for _, name := range []string{"pauses", "fails", "panics"} {
			l.Add(t.Context(), "fast", owner(name))
		}
		if got := ran(); !slices.Contains(got, "pauses") || !slices.Contains(got, "fails") {
			t.Errorf("another lane waits: %v", got)
		}
		time.Sleep(2 * time.Minute)
		close(hang)
		ran()
		mu.Lock()
		defer mu.Unlock()
		for name, want := range map[string]int{"h1": 2, "h2": 1, "h6": 1, "pauses": 2, "fails": 3, "panics": 2} {
			require.Equal(t, want, runs[name], fmt.Sprintf("%s ran", name))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.changed) > 0 {
			t.Errorf("%d owners are kept", len(l.changed))
		}
	})
}

// TestLanesStop: a stop waits for owners that are being reconciled, and no other one starts.
func TestLanesStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var handled atomic.Int32
		l := New(func(context.Context, objects.OwnerKey) (reconcile.Result, error) {
			<-answer
			handled.Add(1)
			return reconcile.Result{}, nil
		}, func(objects.OwnerKey, time.Duration) {})
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- l.Start(ctx) }()
		for i := range 2 * workers {
			l.Add(ctx, "lane", objects.OwnerKey{Kind: "ObjectDeployment", Name: fmt.Sprint(i)})
		}
		synctest.Wait()
		stop()
		synctest.Wait()
		if len(stopped) > 0 {
			t.Fatal("it ended while owners were reconciled")
		}
		close(answer)
		synctest.Wait()
		if len(stopped) == 0 || handled.Load() != workers {
			t.Errorf("ended: %t, after %d owners", len(stopped) > 0, handled.Load())
		}
	})
}
