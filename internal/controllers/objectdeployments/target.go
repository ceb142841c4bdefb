package objectdeployments

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/rollout"
)

// Target is a cluster that objects are rolled out to.
type Target struct {
	*rollout.Executor
	// Home is the UID of the namespace kube-system of the cluster of our own kinds, where
	// that is another one; else it is empty.
	Home types.UID
}

// newTarget completes an executor. From then on enqueue is called for owners of which an
// object has changed.
func (r *Reconciler) newTarget(e *rollout.Executor) *Target {
	e.Tracker.Wake = r.enqueue
	e.Tracker.Served = func(gk schema.GroupKind, apiVersion string) bool {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return false
		}
		_, err = e.Cluster.Mapping(gk, gv.Version)
		return !meta.IsNoMatchError(err)
	}
	e.Alive, e.Exists = r.alive, r.accountExists
	return &Target{Executor: e}
}

// namespaced is a rollout.Scope. What it says is one answer of one moment: the kind may
// go between two questions.
func (t *Target) namespaced(gk schema.GroupKind, version string) (namespaced, known bool) {
	mapping, err := t.Cluster.Mapping(gk, version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// ClaimsOf returns the claims to objects of a cluster, by its UID; that of the cluster of
// our own kinds is empty.
func (r *Reconciler) ClaimsOf(cluster types.UID) *claims.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := r.claims[cluster]
	if table == nil {
		table = claims.NewTable(func(waiter objects.Owner) { r.enqueue(waiter.OwnerKey) })
		r.claims[cluster] = table
	}
	return table
}
