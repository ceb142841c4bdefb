package measure

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

func (c *Cluster) upgrade() Measurement {
	c.tb.Helper()
	return c.roll(Upgrade, c.next(false))
}

func (c *Cluster) upgradeAll() Measurement {
	c.tb.Helper()
	return c.roll(UpgradeAll, c.next(true))
}

func (c *Cluster) raise() Measurement {
	c.tb.Helper()
	return c.roll(Raise, c.raised(c.next(false)))
}

func (c *Cluster) raiseAll() Measurement {
	c.tb.Helper()
	return c.roll(RaiseAll, c.raised(c.next(true)))
}

// next is a release that differs in one object of each package, or in all.
func (c *Cluster) next(all bool) release {
	r := c.installed
	r.middle = fmt.Sprintf("v%d", c.tag+1)
	if all {
		r.value = r.middle
	}
	return r
}

// raised is a release with another version.
func (c *Cluster) raised(r release) release {
	r.version = fmt.Sprintf("1.%d.0", c.tag+1)
	return r
}

// roll measures the time from the first package's new image to the status of the last rollout.
// Later writes for the labels of a raised version belong to the scenario, but not to this time.
func (c *Cluster) roll(scenario string, r release) Measurement {
	c.tb.Helper()
	raised := r.version != c.installed.version
	images := c.push(r)
	profiled := c.profile(scenario)
	m := c.observe(func() (cause, effect sandbox.Filter) {
		seen := c.watch(namespace, c.names())
		c.setImages(images)
		times := seen.wait(hasImage(images))
		for i := range images {
			must(c.tb, c.hasValue(c.tb.Context(), c.middle(i), r.middle))
		}
		if raised {
			c.waitLabels(r.version)
		}
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("patch")),
			writeOf(packages, statusOf, knownBy(times))
	})

	profiled()
	return c.withStored(m)
}

// waitLabels waits until every object carries the version. It checks when the manager is quiet,
// because lists of many objects would delay the measured requests.
func (c *Cluster) waitLabels(version string) {
	c.tb.Helper()
	c.waitQuiescent()
	harness.Eventually(c.tb, c.timeout(), "every object to carry the version "+version, func(ctx context.Context) error {
		return c.countObjects(ctx, c.Total(), client.MatchingLabels{corev1alpha1.PackageVersionLabel: version})
	})
}
