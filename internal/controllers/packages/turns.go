package packages

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/queueing"
)

// turns has a queue for each namespace, and one for ClusterPackages, which waits for no namespace.
type turns struct {
	namespaces, cluster queueing.Requests[types.NamespacedName]
}

func (t *turns) of(namespace string) *queueing.Requests[types.NamespacedName] {
	if namespace == "" {
		return &t.cluster
	}
	return &t.namespaces
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
