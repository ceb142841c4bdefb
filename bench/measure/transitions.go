package measure

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
)

// transitions installs one package after the other. Another client makes the gate of each phase
// ready some time after it appeared, so that it is the last ready object of its phase. A watcher
// with its own connection sees the same write.
func (c *Cluster) transitions() Measurement {
	c.tb.Helper()
	images := c.push(c.installed)
	g := c.watchGates()
	defer g.watch.Stop()
	return c.transitionsOf(g, c.observe(func() (cause, effect sandbox.Filter) {
		times := map[string]time.Time{}
		for i, name := range c.names() {
			seen := c.watch(namespace, []string{name})
			c.create(namespace, []string{name}, images[i:i+1])
			for phase := range c.Phases {
				c.open(g, objectName(i, phase, 0))
			}
			for name, at := range seen.wait(func(pkg *corev1alpha1.Package) bool { return pkg.Name == name }) {
				times[name] = at
			}
		}
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("create")), writeOf(packages, statusOf, knownBy(times))
	}))
}

// transitionsOf adds the audit log's and the watcher's observations of the transitions.
func (c *Cluster) transitionsOf(g *gateWatch, m Measurement) Measurement {
	c.tb.Helper()
	t := transitionTimes(m.Entries, g.ready())
	if want := c.Packages * (c.Phases - 1); t.Count != want {
		c.tb.Fatalf("%d transitions were seen, want %d", t.Count, want)
	}
	m.Figures = map[string]float64{MeasureP50: t.Manager.P50, MeasureP99Ratio: t.Ratio()}
	m.Notes = t.notes()
	return m
}

// open makes a gate ready some time after it appeared.
func (c *Cluster) open(g *gateWatch, name string) {
	c.tb.Helper()
	select {
	case <-g.appeared(name):
	case <-time.After(c.timeout()):
		c.tb.Fatalf("%s did not appear within %s", name, c.timeout())
	case <-c.tb.Context().Done():
		c.tb.Fatal(c.tb.Context().Err())
	}

	// This is long enough for the phase to be complete except for its gate, and not in step with
	// periodic work of the manager.
	time.Sleep(50*time.Millisecond + rand.N(100*time.Millisecond)) //nolint:gosec // drawn, not secret
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gateKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
	must(c.tb, c.Client.Status().Patch(c.tb.Context(), obj, patch))
}

// gateWatch is the independent watcher of gates.
type gateWatch struct {
	watch watch.Interface

	mu    sync.Mutex
	added map[string]chan struct{}
	seen  map[string]time.Time
}

func (c *Cluster) watchGates() *gateWatch {
	c.tb.Helper()
	watcher, err := client.NewWithWatch(c.ownConnection(), client.Options{Scheme: c.Client.Scheme()})
	must(c.tb, err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gateListKind)
	w, err := watcher.Watch(c.tb.Context(), list, client.InNamespace(namespace))
	must(c.tb, err)
	g := &gateWatch{watch: w, added: map[string]chan struct{}{}, seen: map[string]time.Time{}}
	go func() {
		for event := range w.ResultChan() {
			g.receive(event, time.Now())
		}
	}()

	return g
}

func (g *gateWatch) receive(event watch.Event, at time.Time) {
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Deleted {
		return
	}

	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(conditions) == 0 {
		if event.Type == watch.Added {
			close(g.channel(obj.GetName()))
		}
		return
	}

	if _, known := g.seen[obj.GetName()]; !known {
		g.seen[obj.GetName()] = at
	}
}

// channel is closed when the gate appears; g.mu is held.
func (g *gateWatch) channel(name string) chan struct{} {
	if g.added[name] == nil {
		g.added[name] = make(chan struct{})
	}
	return g.added[name]
}

// appeared is closed when the gate exists.
func (g *gateWatch) appeared(name string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.channel(name)
}

// ready returns when each gate was seen to be ready.
func (g *gateWatch) ready() map[string]time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[string]time.Time{}
	for name, at := range g.seen {
		seen[name] = at
	}
	return seen
}
