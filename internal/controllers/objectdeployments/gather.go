package objectdeployments

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// ownerIndex finds sets by the owner that they belong to.
const ownerIndex = "owner"

// reconciliation is one reconcile of one owner.
type reconciliation struct {
	*Reconciler
	*owner
	key   objects.OwnerKey
	scope corev1alpha1.Scope
	// deployment is nil where the owner is a set that stands alone.
	deployment corev1alpha1.GenericObjectDeployment
	// sets are all sets of the owner in ascending order of revision.
	sets []corev1alpha1.GenericObjectSet
	// former are sets of a deployment of this name that is gone.
	former []corev1alpha1.GenericObjectSet
	// ref is the target; nil for the cluster of our own kinds. away is why nothing can be
	// done there, nil where it is connected.
	ref  *corev1alpha1.TargetReference
	away *targets.State
	// current is the set that the template stands for; nil where there is none.
	current corev1alpha1.GenericObjectSet
	after   time.Duration
	// ownerProblem is why a foreign owner cannot be watched.
	ownerProblem string
}

// ours reports whether a reference is to a kind of this API group.
func ours(ref *metav1.OwnerReference) bool {
	return strings.HasPrefix(ref.APIVersion, corev1alpha1.GroupVersion.Group+"/")
}

// gather reads an owner, and recalls what is remembered of it.
func (r *Reconciler) gather(ctx context.Context, key objects.OwnerKey) (*reconciliation, error) {
	s, err := r.read(ctx, key)
	if err != nil || s == nil {
		return nil, err
	}
	return s, s.recall(ctx)
}

// read reads the owner and its sets from the caches, as new as they are known
// to be. It returns nil where nothing is left of the owner.
func (r *Reconciler) read(ctx context.Context, key objects.OwnerKey) (*reconciliation, error) {
	s := &reconciliation{Reconciler: r, key: key, scope: corev1alpha1.ScopeOf(key.Namespace)}
	if strings.HasSuffix(key.Kind, "ObjectDeployment") {
		dep := s.scope.NewObjectDeployment()
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, dep)
		switch {
		case err == nil:
			s.deployment, _ = r.fresh.Latest(dep.(client.Object)).(corev1alpha1.GenericObjectDeployment)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	if err := s.listSets(ctx); err != nil {
		return nil, err
	}
	if s.deployment == nil && len(s.sets) == 0 {
		r.forgetOwner(key)
		return nil, nil
	}
	if s.deployment == nil && strings.HasSuffix(key.Kind, "ObjectDeployment") {
		if err := s.dropFormer(ctx, s.sets); err != nil {
			return nil, err
		}
		s.forget()
		return nil, nil
	}
	if !s.remote() || s.succeeded() {
		if err := s.keepRestored(ctx); err != nil {
			return nil, err
		}
		if err := s.dropFormer(ctx, s.former); err != nil {
			return nil, err
		}
	}
	s.ref = s.targetRef()
	return s, nil
}

// recall completes what was read with the memory of the owner.
func (s *reconciliation) recall(ctx context.Context) error {
	target, in := s.connect()
	s.owner = s.remember(s.key, s.top().GetUID(), target, in)
	s.rollout.Account = s.account()
	s.retry()
	return s.relate(ctx)
}

// top returns the owner object.
func (s *reconciliation) top() corev1alpha1.Conditioned {
	if s.deployment != nil {
		return s.deployment
	}
	return s.sets[0]
}

// account returns the account of the template, or of the lone set. In another cluster it
// is the user of the kubeconfig.
func (s *reconciliation) account() objects.Account {
	if s.ref != nil {
		return objects.Account{}
	}
	if s.deployment != nil {
		return objectsets.AccountOf(&s.deployment.ObjectDeploymentSpec().Template.Spec, s.key.Namespace, s.Namespace)
	}
	return objectsets.AccountOf(&s.sets[0].ObjectSetSpec().ObjectSetTemplateSpec, s.key.Namespace, s.Namespace)
}

func (s *reconciliation) listSets(ctx context.Context) error {
	if ofPhase(s.key) {
		return s.readPhase(ctx)
	}
	list := s.scope.NewObjectSetList()
	if err := s.Client.List(ctx, list.(client.ObjectList), client.InNamespace(s.key.Namespace), client.MatchingFields{ownerIndex: s.key.String()}); err != nil {
		return err
	}
	s.sets, s.former = nil, nil
	seen := map[types.UID]bool{}
	for _, set := range list.GenericObjectSets() {
		seen[set.GetUID()] = true
		newest, ok := s.fresh.Latest(set).(corev1alpha1.GenericObjectSet)
		switch {
		case !ok:
		case s.deployment == nil || objectsets.DeploymentOf(newest) == s.deployment.GetUID() || s.remote() && s.deployment.GetDeletionTimestamp() != nil:
			s.sets = append(s.sets, newest)
		default:
			s.former = append(s.former, newest)
		}
	}
	for _, created := range s.fresh.Created(s.key.String()) {
		if set, ok := created.(corev1alpha1.GenericObjectSet); ok && !seen[set.GetUID()] {
			s.sets = append(s.sets, set)
		}
	}
	slices.SortFunc(s.sets, func(a, b corev1alpha1.GenericObjectSet) int {
		return cmp.Or(cmp.Compare(a.ObjectSetSpec().Revision, b.ObjectSetSpec().Revision), cmp.Compare(a.GetName(), b.GetName()))
	})
	return nil
}

// relate finds out whose objects count as the owner's: those of its sets, and of
// the phases that an earlier engine ran elsewhere. A lone set takes from those in
// spec.previous too, and yields to those that name it there.
func (s *reconciliation) relate(ctx context.Context) error {
	own, delegated := objectsets.Controllers(s.sets...)
	s.rollout.Controllers, s.rollout.Previous = phases.Controllers{Own: own, Delegated: delegated}, nil
	if s.deployment != nil {
		return nil
	}
	if ofPhase(s.key) {
		return s.relatePhase(ctx, s.sets[0].(*phaseSet))
	}
	all := s.scope.NewObjectSetList()
	if err := s.Client.List(ctx, all.(client.ObjectList), client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	me := s.sets[0]
	predecessors, successors := sets.Set[types.UID]{}, sets.Set[types.UID]{}
	for _, other := range all.GenericObjectSets() {
		own, delegated := objectsets.Controllers(other)
		if names(me, other) {
			predecessors = predecessors.Union(own).Union(delegated)
			s.rollout.Previous = append(s.rollout.Previous, other.GetUID())
		}
		if names(other, me) {
			successors = successors.Union(own).Union(delegated)
		}
	}
	s.rollout.Controllers.Predecessors, s.rollout.Controllers.Successors = predecessors, successors
	return nil
}

// names reports whether set has other in its spec.previous.
func names(set, other corev1alpha1.GenericObjectSet) bool {
	return slices.ContainsFunc(set.ObjectSetSpec().Previous, func(p corev1alpha1.PreviousRevisionReference) bool {
		return p.Name == other.GetName() && set.GetUID() != other.GetUID()
	})
}

// remember returns the memory of an owner, made where there is none, where the
// name belongs to another object now, or where the target has another session: that is
// like a restart for the owner, which keeps its claims.
func (r *Reconciler) remember(key objects.OwnerKey, uid types.UID, target *Target, in *claimants) *owner {
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
	var home types.UID
	if target != nil {
		home = target.Home
	}
	o = &owner{
		Target:        target,
		rollout:       engine.New(objects.Owner{OwnerKey: key, UID: uid, Cluster: home}),
		digests:       map[types.UID]objects.Digest{},
		reported:      map[types.UID]time.Time{},
		missingReadAt: map[types.UID]time.Time{},
		unreferenced:  map[string]*metav1.PartialObjectMetadata{},
		stored: objectsets.Stored{
			Slices: map[string][]corev1alpha1.ObjectSetObject{}, Secrets: map[string][]corev1alpha1.ObjectSetObject{},
		},
	}
	o.rollout.Claims = table
	r.owners[key] = o
	return o
}

// unwatch ends the watches of the owner.
func (o *owner) unwatch() {
	if o.Target != nil && o.Cluster != nil {
		o.Forget(o.rollout)
	}
}

// release ends the claims of the owner.
func (o *owner) release() {
	if o.rollout.Claims != nil {
		o.rollout.Claims.Release(o.rollout.Owner)
	}
}

// forgetSet drops what is remembered of a set that owns nothing any more, or is gone.
func (o *owner) forgetSet(uid types.UID) {
	delete(o.digests, uid)
	delete(o.reported, uid)
	delete(o.missingReadAt, uid)
}

// forgetOwner drops all memory of an owner that is gone.
func (r *Reconciler) forgetOwner(key objects.OwnerKey) {
	r.mu.Lock()
	o := r.owners[key]
	delete(r.owners, key)
	r.mu.Unlock()
	r.memory.Count(memoryKey(key), 0)
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
	r.fresh.Forget(key.String())
}

func (s *reconciliation) forget() { s.forgetOwner(s.key) }
