package packages

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/queueing"
)

// admit reports whether a queue admits the Package; if so, the caller has to call end. Otherwise
// the Package is reconciled again once it is admitted.
func (s *reconciliation) admit(to *queueing.Requests[types.NamespacedName]) (end func(), ok bool) {
	key := keyOf(s.pkg)
	if end, ok = to.Start(key.Namespace, key); !ok {
		s.waits = to
	}
	return end, ok
}

// leave removes a Package from all queues except the one that its last reconcile waits in.
func (r *Reconciler) leave(req reconcile.Request, s *reconciliation) {
	for _, queue := range []*queueing.Requests[types.NamespacedName]{r.resolutions, r.releases} {
		if s == nil || s.waits != queue {
			queue.Leave(req.Namespace, req.NamespacedName)
		}
	}
}
