package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// restart measures the time from the start of the process, after a graceful stop of the previous
// one, to the end of its last request or of its last work, whichever is later.
func (c *Cluster) restart() Measurement {
	c.tb.Helper()
	before := c.leader(c.tb.Context())
	c.manager.Stop()
	return c.measure(func() ([]sandbox.Entry, Span) {
		s := Span{Start: time.Now()}
		c.startManager()
		work := watchWork(c.manager.PID())
		harness.Eventually(c.tb, c.timeout(), "the new manager to lead with its caches in sync", func(ctx context.Context) error {
			if holder := c.leader(ctx); holder == "" || holder == before {
				return errors.New("it does not lead")
			}
			return c.manager.Ready(ctx)
		})
		// While the API server prepares a long list, the manager neither sends requests nor works.
		for c.waitQuiescent(); time.Since(work.last()) < c.o.Quiet; c.waitQuiescent() {
		}
		s.End = work.end()
		entries := c.since()
		found := false
		for _, e := range entries {
			if byManager(e) && e.Object.Resource != "leases" {
				found = true
				s.End = later(s.End, e.Done)
			}
		}
		if !found {
			c.tb.Fatal(errNoEffect)
		}
		return entries, s
	})
}

const (
	// workWindow is the window for judging the work of a process. At rest it takes some
	// milliseconds per second, for its Lease.
	workWindow = 100 * time.Millisecond
	// workShare is the processor time within a window from which a process is working.
	workShare = 30 * time.Millisecond
)

// work observes how much a process works.
type work struct {
	stop chan struct{}
	seen atomic.Pointer[time.Time]
}

// watchWork starts observing a process.
func watchWork(pid int) *work {
	w := &work{stop: make(chan struct{})}
	w.seen.Store(new(time.Time))
	go func() {
		ticker := time.NewTicker(workWindow)
		defer ticker.Stop()
		before, _ := processorTime(pid)
		for {
			select {
			case now := <-ticker.C:
				used, err := processorTime(pid)
				if err == nil && used-before >= workShare {
					w.seen.Store(&now)
				}
				before = used
			case <-w.stop:
				return
			}
		}
	}()

	return w
}

// last returns when the process last worked.
func (w *work) last() time.Time { return *w.seen.Load() }

// end stops observing, and returns the same.
func (w *work) end() time.Time {
	close(w.stop)
	return w.last()
}

// leader returns the holder of the manager's Lease, or "".
func (c *Cluster) leader(ctx context.Context) string {
	c.tb.Helper()
	lease := &coordinationv1.Lease{}
	must(c.tb, client.IgnoreNotFound(c.Client.Get(ctx, client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}, lease)))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
