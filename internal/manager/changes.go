package manager

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/kube/panics"
)

// signal calls its listeners. They are added while the manager is set up, before anything is sent.
type signal[T any] struct{ listeners []func(T) }

// listen adds a listener; it is not safe for use after the start.
func (s *signal[T]) listen(listener func(T)) { s.listeners = append(s.listeners, listener) }

// send calls the listeners one after another. They must not wait.
func (s *signal[T]) send(value T) {
	for _, listener := range s.listeners {
		listener(value)
	}
}

// notice is a signal without a value.
type notice struct{ signal[struct{}] }

func (n *notice) listen(listener func()) { n.signal.listen(func(struct{}) { listener() }) }

func (n *notice) send() { n.signal.send(struct{}{}) }

// changes are the signals of changes in the cluster. The parts that notice a change are made before
// the controllers that follow it.
type changes struct {
	// kinds are kinds whose API has changed. awaited are these and the kinds of other clusters, and
	// schemas has the kinds whose schema is published.
	kinds, awaited, schemas signal[schema.GroupKind]
	versions                signal[version.Info]
	// environment is the part of the cluster that packages and templates see, and hosted are the
	// hosted clusters in it.
	environment, hosted notice
	// ceiling has the maximum rights of packages.
	ceiling notice
}

// followPackages has the controller of packages follow the cluster.
func (c *changes) followPackages(r *packages.Reconciler) {
	c.environment.listen(r.EnvironmentChanged)
	c.ceiling.listen(r.CeilingChanged)
	c.kinds.listen(c.awaited.send)
	c.awaited.listen(func(gk schema.GroupKind) {
		if r.KindChanged(gk) {
			c.schemaFollows(gk)
		}
	})
	c.schemas.listen(func(gk schema.GroupKind) { r.KindChanged(gk) })
}

// schemaFollows sends that the schema of a kind is published, a moment after the kind.
func (c *changes) schemaFollows(gk schema.GroupKind) {
	panics.After(schemaPublished, "enqueueing packages", func() { c.schemas.send(gk) })
}
