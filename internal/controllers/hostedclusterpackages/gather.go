package hostedclusterpackages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
)

const hostedUpdates = 100 // Packages that are updated at a time, which status.processing names: some 15 KiB

// gather reads a HostedClusterPackage; nil if there is nothing to do.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*reconciliation, error) {
	cached := &corev1alpha1.HostedClusterPackage{}
	if err := r.Client.Get(ctx, key, cached); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(key.Name)
		}
		return nil, client.IgnoreNotFound(err)
	}

	owner, ok := r.Fresh.Latest(cached).(*corev1alpha1.HostedClusterPackage)
	if !ok || owner.DeletionTimestamp != nil {
		return nil, nil // the garbage collector removes the Packages
	}

	s := &reconciliation{Reconciler: r, state: r.memory.of(owner), now: r.Now()}
	s.owner = owner
	return s, nil
}

// gatherInputs reads the Packages and the hosted clusters.
func (s *reconciliation) gatherInputs(ctx context.Context) (err error) {
	if s.template, err = templateOf(s.owner); err != nil {
		return err
	}

	var selected []environment.HostedCluster
	known, err := s.HostedClusters()
	if err == nil {
		selected, err = selectClusters(s.owner, known)
	}
	if err != nil {
		s.unknown = err
		return nil
	}

	if s.packages, err = s.packagesOf(ctx, s.owner, selected); err != nil {
		return err
	}
	return s.look(selected, known)
}

// selectClusters returns one hosted cluster for each namespace, from the selected ones that are not
// being deleted.
func selectClusters(owner *corev1alpha1.HostedClusterPackage, known []environment.HostedCluster) ([]environment.HostedCluster, error) {
	selector, err := metav1.LabelSelectorAsSelector(&owner.Spec.HostedClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSelector, err)
	}

	var selected []environment.HostedCluster
	taken := sets.New[string]()
	for _, c := range known {
		if !c.Deleting && selector.Matches(labels.Set(c.Labels)) && !taken.Has(c.Namespace) {
			taken.Insert(c.Namespace)
			selected = append(selected, c)
		}
	}

	return selected, nil
}

// packagesOf returns the Packages with the name of their owner by namespace, in their latest known
// states, for reading only: the ones that it controls, and the ones in the namespaces of selected
// hosted clusters.
func (r *Reconciler) packagesOf(
	ctx context.Context, owner *corev1alpha1.HostedClusterPackage, selected []environment.HostedCluster,
) (map[string]*corev1alpha1.Package, error) {
	all := map[string]*corev1alpha1.Package{}
	for _, created := range r.Fresh.Created(string(owner.UID)) {
		all[created.GetNamespace()] = created.(*corev1alpha1.Package)
	}

	add := func(cached *corev1alpha1.Package) error {
		delete(all, cached.Namespace)
		pkg, ok := r.Fresh.Latest(cached).(*corev1alpha1.Package)
		if !ok {
			return nil
		}
		if all[cached.Namespace] = pkg; !mutationcache.Reduced(pkg) {
			return nil
		}
		whole := &corev1alpha1.Package{}
		err := r.Reader.Get(ctx, client.ObjectKeyFromObject(pkg), whole)
		if err == nil && whole.UID == pkg.UID {
			all[cached.Namespace] = whole
		}
		return client.IgnoreNotFound(err)
	}

	list := &corev1alpha1.PackageList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{ownerIndex: owner.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}

	for i := range list.Items {
		if err := add(&list.Items[i]); err != nil {
			return nil, err
		}
	}

	for _, c := range selected {
		if all[c.Namespace] != nil {
			continue
		}
		pkg := &corev1alpha1.Package{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: owner.Name}, pkg)
		if err == nil {
			err = add(pkg)
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}

	return all, nil
}

// look makes the snapshot.
func (s *reconciliation) look(selected, known []environment.HostedCluster) error {
	s.templateChanged = int64(s.owner.Status.ObservedGeneration) != s.owner.Generation
	s.most = min(maxUnavailable(s.owner), hostedUpdates)
	queued := sets.New[types.UID]()
	for _, ref := range s.owner.Status.Processing {
		queued.Insert(ref.UID)
	}

	kept := sets.New[string]()
	var present []environment.HostedCluster
	var labels []map[string]string
	for _, c := range selected {
		kept.Insert(c.Namespace)
		if s.packages[c.Namespace] != nil || c.Available {
			present, labels = append(present, c), append(labels, c.Labels)
		}
	}

	s.groups = groupsOf(s.owner.Spec.Partition, labels)
	for _, c := range present {
		t, err := s.targetOf(c, queued)
		if err != nil {
			return err
		}
		s.targets = append(s.targets, t)
	}

	slices.SortStableFunc(s.targets, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.group, b.group), strings.Compare(a.namespace, b.namespace))
	})
	for _, c := range known {
		if c.Deleting { // HyperShift removes the namespace
			kept.Insert(c.Namespace)
		}
	}

	s.gatherSurplus(kept)
	slices.SortFunc(s.problems, func(a, b problem) int { return strings.Compare(a.namespace, b.namespace) })
	s.state.forgetOthers(s.packages, s.targets)
	return nil
}

// gatherSurplus adds the Packages that the owner controls in namespaces that are not kept.
func (s *reconciliation) gatherSurplus(kept sets.Set[string]) {
	for namespace, pkg := range s.packages {
		if kept.Has(namespace) || !metav1.IsControlledBy(pkg, s.owner) {
			continue
		}
		t := target{namespace: namespace}
		s.recall(&t, pkg)
		s.surplus = append(s.surplus, surplus{namespace: namespace, deleting: pkg.DeletionTimestamp != nil, retry: t.refused || t.retry})
	}
	slices.SortFunc(s.surplus, func(a, b surplus) int { return strings.Compare(a.namespace, b.namespace) })
}

// targetOf returns the input of the decision for a hosted cluster and its Package.
func (s *reconciliation) targetOf(c environment.HostedCluster, queued sets.Set[types.UID]) (target, error) {
	t := target{namespace: c.Namespace, group: s.groups.numberOf(c.Labels)}
	pkg := s.packages[c.Namespace]
	if pkg == nil {
		s.recall(&t, nil)
		return t, nil
	}

	t.uid, t.queued, t.deleting = pkg.UID, queued.Has(pkg.UID), pkg.DeletionTimestamp != nil
	if message, pending := s.foreign(pkg); message != "" {
		t.foreign = true
		s.problems = append(s.problems, problem{c.Namespace, corev1alpha1.ReasonCollisionDetected, message, pending})
	}

	var err error
	if t.updated, err = s.isUpdated(pkg); err != nil {
		return t, err
	}

	// A Package that was orphaned is ours once it has its owner again.
	t.updated = t.updated && (t.foreign || metav1.IsControlledBy(pkg, s.owner))
	rolloutOf(&t, pkg)
	s.recall(&t, pkg)
	return t, nil
}

// foreign returns why a Package is not ours, and whether it will be removed without help.
func (s *reconciliation) foreign(pkg *corev1alpha1.Package) (message string, pending bool) {
	switch controller := metav1.GetControllerOf(pkg); {
	case controller == nil && pkg.Annotations[corev1alpha1.HashAnnotation] != "":
		return "", false // left when its owner was deleted without its dependents
	case controller == nil:
		return "it was not made for this HostedClusterPackage; delete or rename it", false
	case controller.UID == s.owner.UID:
		return "", false
	case controller.Kind == ownerKind.Kind && controller.Name == s.owner.Name:
		return "it belongs to a former HostedClusterPackage of this name, and is being removed", true
	default:
		return fmt.Sprintf("it is controlled by %s %s; delete it there, or rename one of them", controller.Kind, controller.Name), false
	}
}

// rolloutOf copies the state that a Package reports.
func rolloutOf(t *target, pkg *corev1alpha1.Package) {
	is := func(typ string, status metav1.ConditionStatus) bool {
		c := meta.FindStatusCondition(pkg.Status.Conditions, typ)
		return c != nil && c.Status == status && c.ObservedGeneration == pkg.Generation
	}
	// A paused Package does not report on a new spec, and stays unchanged.
	inert := pkg.Spec.Paused && meta.IsStatusConditionTrue(pkg.Status.Conditions, corev1alpha1.ConditionAvailable)
	t.available = inert || is(corev1alpha1.ConditionAvailable, metav1.ConditionTrue)
	t.rolledOut = is(corev1alpha1.ConditionAvailable, metav1.ConditionTrue) && is(corev1alpha1.ConditionReady, metav1.ConditionTrue)
	t.stable = inert || t.rolledOut
	t.failed = !t.stable && is(corev1alpha1.ConditionStalled, metav1.ConditionTrue)
	t.progressed = is(corev1alpha1.ConditionProgressing, metav1.ConditionFalse) && conditions.IsTrueFor(pkg.Status.Conditions, corev1alpha1.ConditionUnpacked, pkg.Generation)
	t.paused = meta.IsStatusConditionTrue(pkg.Status.Conditions, corev1alpha1.ConditionPaused)
}
