package measure

import (
	"context"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// drift measures the time from another client's change of a field to the write that undoes it.
func (c *Cluster) drift() Measurement {
	c.tb.Helper()
	return c.disturb("patch", func(name string) { c.change(name, "changed by another") })
}

// missed measures the time from another client's change while no manager runs, and the start of one
// right after it, to the write that corrects it.
func (c *Cluster) missed() Measurement {
	c.tb.Helper()
	c.manager.Stop()
	return c.disturb("patch", func(name string) {
		c.change(name, "changed between two managers")
		c.startManager()
	})
}

// recreate measures the time from another client's delete of an object to the write that creates it
// again.
func (c *Cluster) recreate() Measurement {
	c.tb.Helper()
	return c.disturb("delete", func(name string) { must(c.tb, c.Client.Delete(c.tb.Context(), c.object(name))) })
}

// disturb measures the time from another client's request about one object to the write that
// restores it.
func (c *Cluster) disturb(verb string, act func(name string)) Measurement {
	c.tb.Helper()
	name, resource := c.middle(0), objectResource
	return c.observe(func() (cause, effect sandbox.Filter) {
		act(name)
		harness.Eventually(c.tb, c.timeout(), name+" to be as it was", func(ctx context.Context) error {
			return c.hasValue(ctx, name, c.installed.middle)
		})
		return all(byAdmin, sandbox.ByResource(resource), sandbox.ByVerb(verb), named(name, "")),
			writeOf(resource, named(name, ""))
	})
}
