package measure

import (
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// restart: from the start of the process, after a graceful stop of the one before,
// to the end of its last request or of its last work, whichever is later.
func (c *Cluster) restart() Measurement {
	c.tb.Helper()
	c.manager.Stop()
	return c.measure(func() ([]sandbox.Entry, Span) {
		s := Span{Start: time.Now()}
		c.startManager()
		work := watchWork(c.manager.PID())
		c.waitQuiescent()
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
	// workWindow is the time over which the work of a process is judged: at rest
	// it takes some milliseconds a second, for its Lease.
	workWindow = 100 * time.Millisecond
	// workShare of a window, spent on a processor, is work.
	workShare = 30 * time.Millisecond
)

// work looks at how much a process does.
type work struct {
	stop chan struct{}
	last chan time.Time
}

// watchWork begins to look at a process.
func watchWork(pid int) *work {
	w := &work{stop: make(chan struct{}), last: make(chan time.Time)}
	go func() {
		ticker := time.NewTicker(workWindow)
		defer ticker.Stop()
		before, _ := readCPU(pid)
		var last time.Time
		for {
			select {
			case now := <-ticker.C:
				used, err := readCPU(pid)
				if err == nil && used-before >= workShare {
					last = now
				}
				before = used
			case <-w.stop:
				w.last <- last
				return
			}
		}
	}()
	return w
}

// end stops looking and returns when the process was last seen at work.
func (w *work) end() time.Time {
	close(w.stop)
	return <-w.last
}
