package objectdeployments

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/claims"
)

// remember returns the memory of an owner. It makes a new one if there is none, if the name belongs
// to another object now, or if the target has another session: that is like a restart for the
// owner, which keeps its claims.
func (r *Reconciler) remember(key objects.OwnerKey, uid types.UID, target *Target, in *claimants) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	var table *claims.Table
	if in != nil {
		table = r.claimsOf(*in)
	}

	o := r.owners[key]
	if o != nil && o.rollout.Owner.UID == uid && o.Target == target && o.rollout.Claims == table {
		return o
	}

	if o != nil {
		o.unwatch()
		if o.rollout.Owner.UID != uid || o.rollout.Claims != table {
			o.release()
		}
		defer r.dropClaims(o.rollout.Claims)
	}

	o = &state{
		Target: target, rollout: engine.New(objects.Owner{Names: apinames.Default, OwnerKey: key, UID: uid}), records: map[types.UID]*record{},
		owned:  map[string]*metav1.PartialObjectMetadata{},
		stored: objectsets.Stored{Slices: map[string][]corev1alpha1.ObjectSetObject{}, Secrets: map[string][]corev1alpha1.ObjectSetObject{}},
	}

	o.rollout.Claims = table
	if target != nil {
		o.rollout.Owner.Cluster = target.Home
	}
	r.owners[key] = o
	return o
}

// unwatch ends the watches of the owner.
func (o *state) unwatch() {
	if o.Target != nil && o.Cluster != nil {
		o.Forget(o.rollout)
	}
}

// release ends the claims of the owner.
func (o *state) release() {
	if o.rollout.Claims != nil {
		o.rollout.Claims.Release(o.rollout.Owner)
	}
}

// forget drops the memory of an owner that no longer exists.
func (r *Reconciler) forget(key objects.OwnerKey) {
	r.mu.Lock()
	o := r.owners[key]
	delete(r.owners, key)
	r.mu.Unlock()
	r.quota.Count(memoryKey(key), 0)

	// The work for all objects of the owner is done without the lock of all owners.
	if o != nil {
		o.unwatch()
		o.release()
		r.mu.Lock()
		r.dropClaims(o.rollout.Claims)
		r.mu.Unlock()
	}

	r.Owners.Follow(key, nil)
	if r.Targets != nil {
		r.Targets.Release(key.String())
	}

	r.Fresh.Forget(key.String())
}

func memoryKey(key objects.OwnerKey) quota.Key {
	return quota.Key{Namespace: key.Namespace, Name: "the revisions of " + key.String()}
}

// ClaimsOf returns the claims to objects of a cluster, by its UID, that owners of a namespace
// share; the UID of the cluster of our own kinds is empty.
func (r *Reconciler) ClaimsOf(cluster types.UID, namespace string) *claims.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claimsOf(claimantsOf(cluster, namespace))
}

// claimsOf returns a table, and makes it if there is none. r.mu is held.
func (r *Reconciler) claimsOf(in claimants) *claims.Table {
	table := r.claims[in]
	if table == nil {
		table = claims.NewTable(func(waiter objects.Owner) { r.enqueue(waiter.OwnerKey) })
		r.claims[in] = table
	}
	return table
}

// dropClaims forgets a table of another cluster when no owner uses it any more. r.mu is held.
func (r *Reconciler) dropClaims(table *claims.Table) {
	if table == nil || table == r.claims[claimants{}] {
		return
	}
	for _, o := range r.owners {
		if o.rollout.Claims == table {
			return
		}
	}
	maps.DeleteFunc(r.claims, func(_ claimants, t *claims.Table) bool { return t == table })
}
