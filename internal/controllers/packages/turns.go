package packages

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

func (t *turns) of(namespace string) *queueing.Requests[types.NamespacedName] {
	if namespace == "" {
		return &t.cluster
	}
	return &t.namespaces
}

// connect makes the parts that share what the Reconciler remembers.
func (r *Reconciler) connect(reader client.Reader) {
	enqueue := func(key types.NamespacedName) { r.enqueue(key) }
	r.loads = load.New(load.Setting{
		Pipeline: r.Pipeline, Cache: reader, Now: func() time.Time { return r.Now() }, Enqueue: enqueue, Loaded: r.Loaded,
		Underway: func(namespace string) (all, own int) {
			all, own = r.Underway(namespace)
			packages, ownPackages := r.queue.Depth(namespace)
			return all + packages, own + ownPackages
		},
	})
	r.catalogue = &choice.Catalogue{Reader: reader, Remembered: r.remembered}
	r.ledger = &dependencies.Ledger{Packages: latest{r}, Enqueue: enqueue}
	r.followers = &choice.Followers{Catalogue: r.catalogue, Enqueue: enqueue, Offered: r.ledger.OfferChanged}
	for most, t := range map[int]*turns{limits.ResolutionsAtOnce: &r.resolutions, limits.ReleasesAtOnce: &r.releases} {
		t.namespaces.Most, t.namespaces.Enqueue, t.cluster.Enqueue = most, enqueue, enqueue
	}
}

// take reports whether it is the turn of a Package; if so, end has to be called. Else it is reconciled again in its turn.
func (s *reconciliation) take(t *turns) (end func(), ok bool) {
	key := keyOf(s.pkg)
	if end, ok = t.of(key.Namespace).Begin(key.Namespace, key); !ok {
		s.turns = t
	}
	return end, ok
}

// leaveTurns removes a Package from all queues but the one that its last reconcile entered.
func (r *Reconciler) leaveTurns(req reconcile.Request, s *reconciliation) {
	for _, t := range []*turns{&r.resolutions, &r.releases} {
		if s == nil || s.turns != t {
			t.of(req.Namespace).Leave(req.Namespace, req.NamespacedName)
		}
	}
}
