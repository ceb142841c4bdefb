package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	// smallPackages of smallObjects each are the neighbours of a large package.
	smallPackages  = 50
	smallObjects   = 5
	smallNamespace = "small"
	// namespaceConfigMaps are in every namespace: the certificate authority.
	namespaceConfigMaps = 1
	// started is the share of the large package's objects, one in this many, that means it is being
	// applied.
	started = 20
)

// round has the times of the small packages in one round, from creation to Available, and the
// number of existing objects of the large package before and after.
type round struct {
	name          string
	before, after int
	times         map[string]time.Duration
}

// neighbour installs the small packages alone, then while the large package is applied, and then
// when all of its objects exist but are not ready.
func (c *Cluster) neighbour() Measurement {
	c.tb.Helper()
	large := c.push(c.installed)
	small := c.pushSmall()
	c.Namespace(c.tb, smallNamespace)
	var rounds []round
	m := c.measure(func() ([]sandbox.Entry, Span) {
		s := Span{Start: time.Now()}
		c.round("for the first time", small) // opens watches, loads schemas
		rounds = append(rounds, c.round("alone", small))
		c.create(namespace, c.names(), large)
		c.waitLarge(c.Total() / started)
		rounds = append(rounds, c.round("while the large one is applied", small))
		c.waitLarge(c.Total())
		c.waitQuiescent()
		rounds = append(rounds, c.round("next to the large one, applied and not ready", small))
		s.End = time.Now()
		return c.since(), s
	})

	most := 0.0
	for _, r := range rounds {
		latest := 0.0
		for name, took := range r.times {
			latest = max(latest, (took - rounds[0].times[name]).Seconds())
		}
		q := quantilesOf(slices.Collect(maps.Values(r.times)))
		m.Notes = append(m.Notes, fmt.Sprintf("small packages %s: Available after %.2f s (median), %.2f s (last), at most %.2f s later than alone; the large one had %d objects before and %d after",
			r.name, q.P50/1000, q.Max/1000, latest, r.before, r.after))
		most = max(most, latest)
	}

	m.Figures = map[string]float64{MeasureLater: most}
	return m
}

// round installs the small packages, and deletes them again.
func (c *Cluster) round(name string, images []string) round {
	c.tb.Helper()
	c.o.Report("small packages " + name)
	r := round{name: name, before: c.largeObjects(c.tb.Context()), times: map[string]time.Duration{}}
	mark, err := c.audit.Mark(c.tb.Context())
	must(c.tb, err)
	seen := c.watch(smallNamespace, smallNames())
	c.create(smallNamespace, smallNames(), images)
	sightings := seen.wait(func(*corev1alpha1.Package) bool { return true })
	r.after = c.largeObjects(c.tb.Context())
	entries, err := c.audit.Since(c.tb.Context(), mark, inNamespace(smallNamespace), sandbox.ByResource(packages))
	must(c.tb, err)
	for _, small := range smallNames() {
		s, err := span(entries, all(byAdmin, sandbox.ByVerb("create"), named(small, "")), writeOf(packages, statusOf, named(small, "status"), knownBy(sightings)))
		must(c.tb, err)
		r.times[small] = s.Took()
	}

	gone := c.watch(smallNamespace, smallNames())
	c.remove(smallNamespace, smallNames())
	gone.waitGone()
	return r
}

// waitLarge waits until this many objects of the large package exist.
func (c *Cluster) waitLarge(want int) {
	c.tb.Helper()
	harness.Eventually(c.tb, c.timeout(), "the large package to be applied", func(ctx context.Context) error {
		if got := c.largeObjects(ctx); got < want {
			return fmt.Errorf("%d of %d objects are there", got, want)
		}
		return nil
	})
}

// largeObjects is the number of existing objects of the large package. It requests one of them and
// the number of the others, because a list of all would dominate the measurement.
func (c *Cluster) largeObjects(ctx context.Context) int {
	list := objectList()
	if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return 0
	}
	return len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)) - namespaceConfigMaps
}

func smallNames() []string {
	names := make([]string, smallPackages)
	for i := range names {
		names[i] = fmt.Sprintf("small-%02d", i)
	}
	return names
}

// pushSmall pushes the images of the small packages.
func (c *Cluster) pushSmall() []string {
	c.tb.Helper()
	images := make([]string, smallPackages)
	for i, name := range smallNames() {
		images[i] = c.Push(c.tb, name+":v1", harness.Phased(name, 1, smallObjects))
	}
	return images
}
