package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// gather reads an owner, and recalls its memory.
func (r *Reconciler) gather(ctx context.Context, key objects.OwnerKey) (*reconciliation, error) {
	s, err := r.read(ctx, key)
	if err != nil || s == nil {
		return nil, err
	}
	return s, s.recall(ctx)
}

// read reads the owner and its sets from the caches, as new as they are known to be. It returns nil
// if the owner and its sets no longer exist.
func (r *Reconciler) read(ctx context.Context, key objects.OwnerKey) (*reconciliation, error) {
	s := &reconciliation{Reconciler: r, key: key, scope: corev1alpha1.ScopeOf(key.Namespace)}
	if strings.HasSuffix(key.Kind, "ObjectDeployment") {
		dep := s.scope.NewObjectDeployment()
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, dep)
		switch {
		case err == nil:
			s.deployment, _ = r.Fresh.Latest(dep).(corev1alpha1.GenericObjectDeployment)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}

	if err := s.listSets(ctx); err != nil {
		return nil, err
	}

	if s.deployment == nil && len(s.sets) == 0 {
		r.forget(key)
		return nil, nil
	}

	if s.deployment == nil && strings.HasSuffix(key.Kind, "ObjectDeployment") {
		if err := s.dropFormer(ctx, s.sets); err != nil {
			return nil, err
		}
		s.forget(s.key)
		return nil, nil
	}

	if newest := len(s.sets) - 1; !s.remote() || newest >= 0 && succeeded(s.sets[newest]) {
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

// recall completes the reconciliation with the memory of the owner.
func (s *reconciliation) recall(ctx context.Context) error {
	target, in := s.connect()
	s.state = s.remember(s.key, s.top().GetUID(), target, in)
	s.rollout.Account, s.rollout.RolesCommand = s.account(), s.rolesCommand()
	s.rollout.Adopt = s.Reconciler.adoptCommand
	if value := s.top().GetAnnotations()[corev1alpha1.RetryAnnotation]; value != s.retryValue {
		s.retryValue = value
		s.rollout.Retry() // clears failures and backoff
	}
	return s.relate(ctx)
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

// rolesCommand prints the roles for the account of the Package; empty if there is none.
func (s *reconciliation) rolesCommand() string {
	ref := s.packageOf()
	switch {
	case ref == nil:
		return ""
	case s.key.Namespace == "":
		return "kubectl package rbac clusterpackage/" + ref.Name
	}
	return "kubectl package rbac package/" + ref.Name + " -n " + s.key.Namespace
}

// relate determines whose objects are treated as the owner's: its sets', and objects of the phases
// that an earlier engine ran elsewhere. A lone set also takes from the sets in spec.previous, and
// yields to sets that name it there.
func (s *reconciliation) relate(ctx context.Context) error {
	own, delegated := objectsets.Controllers(s.sets...)
	s.rollout.Controllers, s.rollout.Previous = phases.Controllers{Own: own, Delegated: delegated}, nil
	if s.deployment != nil {
		return nil
	}

	if s.phase != nil {
		var err error
		s.rollout.Controllers, s.rollout.Previous, err = s.Phases.Relate(ctx, s.phase)
		return err
	}

	all := s.scope.NewObjectSetList()
	if err := s.Client.List(ctx, all, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
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
			s.rollout.Controllers.Replaced = s.rollout.Controllers.Replaced || stays(other)
		}
	}

	s.rollout.Controllers.Predecessors, s.rollout.Controllers.Successors = predecessors, successors
	return nil
}

// stays reports whether a set keeps its objects.
func stays(set corev1alpha1.GenericObjectSet) bool {
	return set.GetDeletionTimestamp() == nil && set.ObjectSetSpec().LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived
}

// names reports whether set has other in its spec.previous.
func names(set, other corev1alpha1.GenericObjectSet) bool {
	return slices.ContainsFunc(set.ObjectSetSpec().Previous, func(p corev1alpha1.PreviousRevisionReference) bool {
		return p.Name == other.GetName() && set.GetUID() != other.GetUID()
	})
}

// ownerIndex finds sets by the owner that they belong to.
const ownerIndex = "owner"

// IndexSets indexes the sets of both scopes by their owner, which the Client of a Home
// needs.
func IndexSets(ctx context.Context, indexer client.FieldIndexer) error {
	for _, scope := range corev1alpha1.Scopes() {
		index := func(obj client.Object) []string {
			return []string{objectsets.OwnerOf(obj.(corev1alpha1.GenericObjectSet)).String()}
		}
		if err := indexer.IndexField(ctx, scope.NewObjectSet(), ownerIndex, index); err != nil {
			return fmt.Errorf("cannot index sets by owner: %w", err)
		}
	}
	return nil
}

// listSets reads the sets of the owner from the cache and from this process's own writes.
func (s *reconciliation) listSets(ctx context.Context) error {
	if strings.HasSuffix(s.key.Kind, "ObjectSetPhase") {
		return s.readPhase(ctx)
	}

	list := s.scope.NewObjectSetList()
	if err := s.Client.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingFields{ownerIndex: s.key.String()}); err != nil {
		return err
	}

	s.sets, s.former = nil, nil
	seen := map[types.UID]bool{}
	for _, set := range list.GenericObjectSets() {
		seen[set.GetUID()] = true
		newest, ok := s.Fresh.Latest(set).(corev1alpha1.GenericObjectSet)
		switch {
		case !ok:
		case s.deployment == nil || objectsets.DeploymentOf(newest) == s.deployment.GetUID() || s.remote() && s.deployment.GetDeletionTimestamp() != nil:
			s.sets = append(s.sets, newest)
		default:
			s.former = append(s.former, newest)
		}
	}

	// The cache can lack sets that this process has just created. Without them, the next step would
	// create them again.
	for _, created := range s.Fresh.Created(s.key.String()) {
		if set, ok := created.(corev1alpha1.GenericObjectSet); ok && !seen[set.GetUID()] {
			s.sets = append(s.sets, set)
		}
	}

	slices.SortFunc(s.sets, objectsets.ByRevision)
	return nil
}

// readPhase reads an ObjectSetPhase as the only set.
func (s *reconciliation) readPhase(ctx context.Context) (err error) {
	s.sets, s.former = nil, nil
	if s.Phases == nil {
		return nil
	}
	if s.phase, err = s.Phases.Read(ctx, s.key); err == nil && s.phase != nil {
		s.sets = []corev1alpha1.GenericObjectSet{s.phase}
	}
	return err
}

// dropFormer removes the remains of a deployment that no longer exists: it was deleted with its
// objects kept, or our finalizer was removed by force. A deployment of the same name might exist by
// now. Only the engine removes the finalizers of the remains.
func (s *reconciliation) dropFormer(ctx context.Context, sets []corev1alpha1.GenericObjectSet) error {
	if len(sets) == 0 {
		return nil
	}

	present, err := s.presentUID(ctx)
	if err != nil {
		return err
	}
	if s.deployment != nil && present != s.deployment.GetUID() {
		return nil // the cache is behind: these may be the sets of its successor
	}

	sets = slices.DeleteFunc(slices.Clone(sets), func(set corev1alpha1.GenericObjectSet) bool { return objectsets.DeploymentOf(set) == present })
	isFormer := func(slice *metav1.PartialObjectMetadata) bool {
		ref := metav1.GetControllerOf(slice)
		return present == "" || ref != nil && ref.UID != present
	}

	former, err := s.listSlices(ctx, slices.ContainsFunc(sets, objectsets.Sliced), slices.ContainsFunc(sets, objectsets.Sealed), isFormer)
	if err != nil {
		return err
	}
	if err := s.dropSets(ctx, sets, former); err != nil {
		return fmt.Errorf("cannot remove the remains of a former %s: %w", s.key, err)
	}
	return nil
}

// presentUID reads the UID of the deployment of this name from the API server; it is empty if the
// deployment or its CRD does not exist.
func (s *reconciliation) presentUID(ctx context.Context) (types.UID, error) {
	m, err := s.readMetadata(ctx, s.key.Kind, s.key.Name)
	if err != nil && s.Here.Cluster.State(corev1alpha1.GroupVersion.WithKind(s.key.Kind).GroupKind()).Unserved() {
		return "", nil
	}
	if m == nil || err != nil {
		return "", err
	}
	return m.UID, nil
}
