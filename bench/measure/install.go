package measure

import (
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
)

// install measures the time from the first package's creation to the status of the last rollout.
func (c *Cluster) install() Measurement {
	c.tb.Helper()
	images := c.push(c.installed)
	profiled := c.profile(Install)
	m := c.observe(func() (cause, effect sandbox.Filter) {
		seen := c.watch(namespace, c.names())
		c.create(namespace, c.names(), images)
		times := seen.wait(func(*corev1alpha1.Package) bool { return true })
		must(c.tb, c.countObjects(c.tb.Context(), c.Total()))
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("create")),
			writeOf(packages, statusOf, knownBy(times))
	})

	profiled()
	return c.withStored(m)
}

// rest measures a while without changes.
func (c *Cluster) rest() Measurement {
	c.tb.Helper()
	return c.measure(func() ([]sandbox.Entry, Span) {
		start := time.Now()
		c.idle()
		return c.since(), Span{Start: start, End: time.Now()}
	})
}

// idle waits for the length of a rest.
func (c *Cluster) idle() {
	select {
	case <-time.After(c.o.Rest):
	case <-c.tb.Context().Done():
	}
}
