package measure

import (
	"context"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// delete measures the time from the first deleted package to the request that releases the last
// one, or to the last delete of an object if that is later.
func (c *Cluster) delete() Measurement {
	c.tb.Helper()
	held := c.Slices()
	m := c.observe(func() (cause, effect sandbox.Filter) {
		seen := c.watch(namespace, c.names())
		c.remove(namespace, c.names())
		times := seen.waitGone()
		harness.Eventually(c.tb, c.timeout(), "the objects to be deleted", func(ctx context.Context) error { return c.countObjects(ctx, 0) })
		finalizer := writeOf(packages, func(e sandbox.Entry) bool { return e.Object.Subresource == "" }, knownBy(times))
		object := writeOf(objectResource, sandbox.ByVerb("delete"))
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("delete")),
			func(e sandbox.Entry) bool { return finalizer(e) || object(e) }
	})

	m.Slices = held
	return m
}

// Slices is the number of slices.
func (c *Cluster) Slices() int {
	c.tb.Helper()
	list := &corev1alpha1.ObjectSliceList{}
	if err := c.Client.List(c.tb.Context(), list); err != nil {
		c.tb.Fatal(err)
	}
	return len(list.Items)
}
