package discovery

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/kube/panics"
)

// definitionListener receives definitions, and the outcome of each request.
type definitionListener interface {
	reflector.Listener[*definition]
	Failed(err error)
}

func (d *Discovery) source(of schema.GroupVersionResource) *reflector.Source {
	return &reflector.Source{Client: d.definitions, Resource: of, NewList: func() runtime.Object { return &definitionList{} }}
}

// counted returns the source of a resource, and counts its memory if Options.Held is set.
func (d *Discovery) counted(of schema.GroupVersionResource) cache.ListerWatcherWithContext {
	if d.options.Held == nil {
		return d.source(of)
	}

	return reflector.NewCounted(d.source(of), d.options.Held, func(obj runtime.Object) int64 {
		one, ok := obj.(*definition)
		if !ok {
			return 0
		}
		return one.reduce()
	})
}

// count reports the change of the kept memory.
func (d *Discovery) count() {
	if d.options.Held == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.index.weight() + int64(len(d.available))*definitionBytes
	d.options.Held(now - d.held)
	d.held = now
}

// watch watches definitions until the context ends.
func (d *Discovery) watch(ctx context.Context, resource string, source cache.ListerWatcherWithContext, listener definitionListener) {
	r := &reflector.Reflector{
		Name: "discovery", Type: resource, Source: source, Store: reflector.NewStore(listener), Report: listener.Failed,
	}
	d.watches.Go(func() {
		_ = panics.Guard(context.Background(), "watching "+resource, func() error { r.Run(ctx); return nil })
	})
}

// crds updates the index by the watch of CRDs.
type crds struct {
	*Discovery
	cache.ListerWatcherWithContext
	// until is when the last watch should end, and broke means that a request failed
	// since it started.
	until time.Time
	broke bool
}

// WatchWithContext opens a watch. If the previous one ended too early, the API server may have been
// replaced.
func (c *crds) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	begin := time.Now()
	w, err := c.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err == nil {
		c.connected(begin.Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second))
	}
	return w, err
}

func (c *crds) connected(until time.Time) {
	if c.broke || time.Now().Before(c.until) {
		c.request(&c.wantVersion)
	}
	c.until, c.broke = until, false
}

// Failed receives the outcome of each request.
func (c *crds) Failed(err error) {
	if err != nil {
		c.broke = c.broke || !c.until.IsZero()
		c.known()
	}
}

// Listed receives all CRDs.
func (c *crds) Listed(all []*definition) {
	kinds := c.index.putCRDs(all, true)
	c.count()
	c.options.Changed(kinds)
	c.known()
}

// Changed receives a CRD.
func (c *crds) Changed(crd *definition) {
	kinds := c.index.putCRDs([]*definition{crd}, false)
	c.count()
	c.options.Changed(kinds)
}

// Deleted drops a CRD.
func (c *crds) Deleted(crd *definition) { c.options.Changed(c.index.dropCRD(crd.Name)) }

func (c *crds) known() { c.crdsOnce.Do(func() { close(c.crdsKnown) }) }

// apiServices reads discovery again when an aggregated API is added or removed.
type apiServices struct{ *Discovery }

// Failed does nothing: the watch is repeated.
func (s apiServices) Failed(error) {}

// Listed receives all APIServices.
func (s apiServices) Listed(all []*definition) {
	listed := map[string]bool{}
	for _, a := range all {
		listed[a.Name] = true
		s.Changed(a)
	}

	s.mu.Lock()
	var gone []string
	for name := range s.available {
		if !listed[name] {
			gone = append(gone, name)
		}
	}
	s.mu.Unlock()
	for _, name := range gone {
		s.drop(name)
	}
	if s.index.endAway(func(name string) bool { return !listed[name] }) {
		s.Reload()
	}
}

// Changed receives an APIService.
func (s apiServices) Changed(a *definition) {
	gv, ok := a.offered()
	if !ok && a.Spec.Service != nil {
		s.index.setAway(a.Name, gv)
	} else {
		s.endAway(a.Name)
	}
	if !ok {
		s.drop(a.Name)
		return
	}

	s.mu.Lock()
	old := s.available[a.Name]
	s.available[a.Name] = gv
	s.mu.Unlock()
	s.count()
	if old != gv && !s.index.serves(gv) { // at the start discovery mostly has it
		s.Reload()
	}
}

// Deleted drops an APIService.
func (s apiServices) Deleted(a *definition) {
	s.endAway(a.Name)
	s.drop(a.Name)
}

// endAway reads discovery again if an APIService was not available, because its users wait for it.
func (s apiServices) endAway(name string) {
	if s.index.endAway(func(away string) bool { return away == name }) {
		s.Reload()
	}
}

func (s apiServices) drop(name string) {
	s.mu.Lock()
	_, had := s.available[name]
	delete(s.available, name)
	s.mu.Unlock()
	s.count()
	if had {
		s.Reload()
	}
}
