package measure

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// revisions is the number of revisions in the scenario History: as many as are kept.
const revisions = int(corev1alpha1.DefaultRevisionHistoryLimit)

// history makes ten more revisions, one after the other, and waits for the length of a rest before
// it reads the memory. The span is from the first cause to the last effect.
func (c *Cluster) history() Measurement {
	c.tb.Helper()
	return c.measure(func() ([]sandbox.Entry, Span) {
		for n := range revisions {
			c.o.Report(fmt.Sprintf("revision %d of %d", n+1, revisions))
			images := c.push(c.next(false))
			seen := c.watch(namespace, c.names())
			c.setImages(images)
			seen.wait(hasImage(images))
		}
		c.waitQuiescent()
		c.expectHistory()
		made := c.since()
		c.idle()
		s, err := span(made, all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("patch")), writeOf(packages, statusOf))
		must(c.tb, err)
		return c.since(), s
	})
}

// expectHistory fails unless every package has as many archived revisions as it can, in addition to
// the active one.
func (c *Cluster) expectHistory() {
	c.tb.Helper()
	want := c.Packages * (revisions + 1)
	harness.Eventually(c.tb, c.timeout(), "the history to be complete", func(ctx context.Context) error {
		sets := &corev1alpha1.ObjectSetList{}
		if err := c.Client.List(ctx, sets, client.InNamespace(namespace)); err != nil {
			return err
		}
		if got := len(sets.Items); got != want {
			return fmt.Errorf("%d revisions are kept, want %d", got, want)
		}
		return nil
	})
}
