package measure

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// begun is the share of the large package, one in so many objects, from which
	// it counts as being applied.
	begun = 20
)

// Rounds in which the small packages are installed.
const (
	roundWarm   = "for the first time"
	roundAlone  = "alone"
	roundDuring = "while the large one is applied"
	roundBeside = "beside the large one, applied and not ready"
)

// NeighbourTimes are the times, from creation to Available, of the small packages
// of one round.
type NeighbourTimes struct {
	Round string `json:"round"`
	// Seconds of the median and of the last package.
	Median float64 `json:"medianSeconds"`
	Last   float64 `json:"lastSeconds"`
	// Later is how much later the package that lost most was Available than the
	// same package in the first round.
	Later float64 `json:"laterSeconds"`
	// Objects of the large package that were there when the round began and when
	// it was over.
	Before int `json:"largeObjectsBefore"`
	After  int `json:"largeObjectsAfter"`

	times map[string]time.Duration
}

// neighbour installs the small packages alone, while the large one is applied,
// and when all objects of the large one are there but not ready.
func (c *Cluster) neighbour() Measurement {
	c.tb.Helper()
	large := c.push(c.installed)
	small := c.pushSmall()
	c.Namespace(c.tb, smallNamespace)
	var rounds []NeighbourTimes
	m := c.measure(func() ([]sandbox.Entry, Span) {
		s := Span{Start: time.Now()}
		c.round(roundWarm, small) // opens watches, loads schemas
		rounds = append(rounds, c.round(roundAlone, small))
		c.create(namespace, c.names(), large)
		c.waitLarge(c.Total() / begun)
		rounds = append(rounds, c.round(roundDuring, small))
		c.waitLarge(c.Total())
		c.waitQuiescent()
		rounds = append(rounds, c.round(roundBeside, small))
		s.End = time.Now()
		return c.since(), s
	})
	for i := range rounds {
		for name, took := range rounds[i].times {
			rounds[i].Later = max(rounds[i].Later, (took - rounds[0].times[name]).Seconds())
		}
	}
	m.Neighbours = rounds
	return m
}

// round installs the small packages, and deletes them again.
func (c *Cluster) round(name string, images []string) NeighbourTimes {
	c.tb.Helper()
	c.o.Report("small packages " + name)
	t := NeighbourTimes{Round: name, Before: c.largeObjects(c.tb.Context())}
	mark, err := c.audit.Mark(c.tb.Context())
	must(c.tb, err)
	seen := c.watch(smallNamespace, smallNames())
	c.create(smallNamespace, smallNames(), images)
	sightings := seen.wait(func(*corev1alpha1.Package) bool { return true })
	t.After = c.largeObjects(c.tb.Context())
	entries, err := c.audit.Since(c.tb.Context(), mark, inNamespace(smallNamespace), sandbox.ByResource(packages))
	must(c.tb, err)
	t.times = map[string]time.Duration{}
	var took []time.Duration
	for _, small := range smallNames() {
		s, err := span(entries, all(byAdmin, sandbox.ByVerb("create"), named(small, "")), writeOf(packages, statusOf, named(small, "status"), knownBy(sightings)))
		must(c.tb, err)
		t.times[small] = s.Took()
		took = append(took, s.Took())
	}
	q := quantilesOf(took)
	t.Median, t.Last = q.P50/1000, q.Max/1000
	gone := c.watch(smallNamespace, smallNames())
	c.remove(smallNamespace, smallNames())
	gone.waitGone()
	return t
}

// waitLarge waits until a number of the large package's objects is there.
func (c *Cluster) waitLarge(want int) {
	c.tb.Helper()
	harness.Eventually(c.tb, c.timeout(), "the large package to be applied", func(ctx context.Context) error {
		if got := c.largeObjects(ctx); got < want {
			return fmt.Errorf("%d of %d objects are there", got, want)
		}
		return nil
	})
}

// largeObjects is how many objects of the large package are there. It asks for one of
// them and how many more there are: a list of all would dominate the measurement.
func (c *Cluster) largeObjects(ctx context.Context) int {
	gvk := c.kind().gvk
	gvk.Kind += "List"
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
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
