package objectsets

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// Ours reports whether a reference is to a kind of this API group.
func Ours(ref *metav1.OwnerReference) bool {
	return strings.HasPrefix(ref.APIVersion, corev1alpha1.GroupVersion.Group+"/")
}

// OwnerOf returns the owner that a set belongs to: the deployment that controls it, or the one that
// created it if the garbage collector removed the reference; otherwise the set itself.
func OwnerOf(set corev1alpha1.GenericObjectSet) objects.OwnerKey {
	scope := corev1alpha1.ScopeOf(set.GetNamespace())
	kind := scope.Kind("ObjectDeployment")
	if ref := metav1.GetControllerOf(set); ref != nil && ref.Kind == kind && Ours(ref) {
		return objects.OwnerKey{Kind: kind, Namespace: set.GetNamespace(), Name: ref.Name}
	}

	name := set.GetLabels()[corev1alpha1.ObjectDeploymentLabel]
	if set.GetAnnotations()[corev1alpha1.ObjectDeploymentUIDAnnotation] != "" && name != "" {
		return objects.OwnerKey{Kind: kind, Namespace: set.GetNamespace(), Name: name}
	}
	return objects.OwnerKey{Kind: scope.Kind("ObjectSet"), Namespace: set.GetNamespace(), Name: set.GetName()}
}

// DeploymentOf returns the UID of the deployment that created a set, because an earlier deployment
// can have had the same name.
func DeploymentOf(set corev1alpha1.GenericObjectSet) types.UID {
	if ref := metav1.GetControllerOf(set); ref != nil {
		return ref.UID
	}
	return types.UID(set.GetAnnotations()[corev1alpha1.ObjectDeploymentUIDAnnotation])
}

// ByRevision orders sets from the oldest to the newest.
func ByRevision(a, b corev1alpha1.GenericObjectSet) int {
	return cmp.Or(cmp.Compare(a.ObjectSetSpec().Revision, b.ObjectSetSpec().Revision), cmp.Compare(a.GetName(), b.GetName()))
}

// Controllers returns the UIDs that appear as controllers on objects of sets: the sets' own,
// and the UIDs of their ObjectSetPhases, through which agents control objects.
func Controllers(of ...corev1alpha1.GenericObjectSet) (own, delegated sets.Set[types.UID]) {
	own, delegated = sets.Set[types.UID]{}, sets.Set[types.UID]{}
	for _, set := range of {
		own.Insert(set.GetUID())
		for _, phase := range set.ObjectSetStatus().RemotePhases {
			delegated.Insert(phase.UID)
		}
	}
	return own, delegated
}

// Owns reports whether the set can own objects.
func Owns(set corev1alpha1.GenericObjectSet) bool {
	return !meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionArchived)
}

// Unwritten reports whether a set has not written any object, and its claim was never decided.
func Unwritten(set corev1alpha1.GenericObjectSet) bool {
	return Owns(set) && !Written(set) && set.GetAnnotations()[corev1alpha1.ClaimedAnnotation] == "" &&
		meta.FindStatusCondition(set.ObjectSetStatus().Conditions, corev1alpha1.ConditionClaimed) == nil
}

// Written reports whether a set might have written an object. It might if it has claimed its
// objects, which is recorded before the first write, if one of its phases has started, which stays
// on record if it is activated again, if it has succeeded, or if it reports an object.
func Written(set corev1alpha1.GenericObjectSet) bool {
	status := set.ObjectSetStatus()
	return legacy(set) || ClaimedAtCreation(set) || len(status.ControllerOf) > 0 || len(status.Retained) > 0 ||
		meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionClaimed) || meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded) ||
		slices.ContainsFunc(status.Phases, hasBegun)
}

// ClaimOf returns the recorded state of a set's claim: whether it was lost, and whether a phase has
// started with it.
func ClaimOf(set corev1alpha1.GenericObjectSet) (lost, proven bool) {
	status := set.ObjectSetStatus()
	return meta.IsStatusConditionFalse(status.Conditions, corev1alpha1.ConditionClaimed), legacy(set) || slices.ContainsFunc(status.Phases, hasBegun)
}

// hasBegun reports whether a phase has started by its recorded state, even if it is torn down.
func hasBegun(phase corev1alpha1.PhaseStatus) bool {
	return phase.State.Opened() || phase.State == corev1alpha1.PhaseStateTearingDown || phase.State == corev1alpha1.PhaseStateGone
}

// Waits reports whether a set was created to await its activation, and has not claimed its objects
// yet.
func Waits(set corev1alpha1.GenericObjectSet) bool {
	return set.GetAnnotations()[corev1alpha1.AwaitingActivationAnnotation] == "true" && Unwritten(set)
}

// Waiting reports whether a set of a deployment awaits its activation. None of its objects are
// claimed or written.
func Waiting(set corev1alpha1.GenericObjectSet) bool {
	return Waits(set) && set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStatePaused &&
		set.GetAnnotations()[corev1alpha1.PausedByParentAnnotation] == ""
}

// Renumbered reports whether a set has a higher revision than its status describes, because it is
// about to be activated again.
func Renumbered(set corev1alpha1.GenericObjectSet) bool {
	described := set.ObjectSetStatus().Revision
	return described > 0 && set.ObjectSetSpec().Revision > described
}

// Restore copies the recorded progress of a set into its revision; fresh means that this process
// sees the set for the first time.
func Restore(r *engine.Revision, set corev1alpha1.GenericObjectSet, fresh bool) {
	status, lifecycle := set.ObjectSetStatus(), set.ObjectSetSpec().LifecycleState
	r.Pause(lifecycle == corev1alpha1.ObjectSetLifecycleStatePaused)
	r.Retains = retainedBy(set)
	rec := phases.Recorded{
		Claimed:   r.ClaimedAtCreation || legacy(set) || meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionClaimed),
		Succeeded: meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded),
		Started:   startedPhases(r, set),
		Removing:  lifecycle == corev1alpha1.ObjectSetLifecycleStateArchived || set.GetDeletionTimestamp() != nil,
		Releasing: Orphaned(set),
	}

	if rec.Claimed && !r.Incomplete() && first(set) {
		rec.Preopened = unprobed(r)
	}

	r.Restore(rec)
	if fresh {
		restoreReady(r, status)
	}

	for i, phase := range status.Phases {
		written := phase.State == corev1alpha1.PhaseStateProbing || phase.State == corev1alpha1.PhaseStateReady || phase.State == corev1alpha1.PhaseStateUnready
		if i < len(r.Phases) && (written || r.Succeeded()) {
			r.RestorePhase(i, fresh)
		}
	}
}

// first reports whether the set is the first one of its owner, so no older set owns the objects of
// phases that it has not reached.
func first(set corev1alpha1.GenericObjectSet) bool {
	spec := set.ObjectSetSpec()
	alone := OwnerOf(set).Kind == corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectSet")
	return len(spec.Previous) == 0 && (alone || spec.Revision <= 1) // if it is activated again, the first one gets a higher number
}

// restoreReady copies which phases were ready when this process started.
func restoreReady(r *engine.Revision, status *corev1alpha1.ObjectSetStatus) {
	ready := make([]bool, len(r.Phases))
	for i := range ready {
		recorded := i < len(status.Phases) && status.Phases[i].State == corev1alpha1.PhaseStateReady
		ready[i] = recorded || meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionAvailable)
	}
	r.RestoreReady(ready)
}

// ClaimedAtCreation reports whether the set was created with its objects claimed, and has no status
// yet. A status is more reliable, for example if a deposed leader created the set late. The result
// matters for sets from before the start of this process; newer claims are in memory.
func ClaimedAtCreation(set corev1alpha1.GenericObjectSet) bool {
	return set.GetAnnotations()[corev1alpha1.ClaimedAnnotation] == "true" && set.ObjectSetStatus().ObservedGeneration == 0 &&
		meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionClaimed) == nil
}

// unprobed returns the number of phases that open together with the claim of an owner's first
// revision: the first phase, and each phase after phases without probed objects. A later revision
// records each phase separately, because an older revision owns the objects until then.
func unprobed(r *engine.Revision) int {
	for i, d := range r.Objects() {
		if r.Probed.Has(d.Key.GroupKind()) {
			return i + 1
		}
	}
	return len(r.Phases)
}

// Orphaning reports whether an object is being deleted with its dependents orphaned, and
// the garbage collector still removes their references.
func Orphaning(obj metav1.Object) bool {
	return slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// Orphaned reports whether an object is deleted with its dependents orphaned.
func Orphaned(obj metav1.Object) bool {
	value := obj.GetAnnotations()[corev1alpha1.OrphanedAnnotation]
	return Orphaning(obj) || value == "true" || value == corev1alpha1.OrphanedTakingBack
}

// legacy reports whether an earlier engine rolled the set out. Such an engine records neither
// claims nor phases.
func legacy(set corev1alpha1.GenericObjectSet) bool {
	status := set.ObjectSetStatus()
	return len(status.Phases) == 0 && (len(status.ControllerOf) > 0 || meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded))
}

// startedPhases returns the number of started phases, by the record. A set that an earlier engine
// rolled out has no record: if it succeeded, all have started. Otherwise it reports no object
// of a failing phase, so one phase more than those with a reported object has started.
func startedPhases(r *engine.Revision, set corev1alpha1.GenericObjectSet) int {
	status, all, n := set.ObjectSetStatus(), len(r.Phases), 0
	if legacy(set) {
		if meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded) {
			return all
		}
		for _, ref := range status.ControllerOf {
			key := objects.Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
			if d, ph := r.Find(key); d != nil {
				n = max(n, ph+1)
			}
		}
		return min(n+1, all)
	}

	for i, phase := range status.Phases {
		if hasBegun(phase) {
			n = i + 1
		}
	}

	return min(n, all)
}

// AccountOf returns the account of a template in a namespace. The account of a cluster-scoped
// template is in the namespace of the manager.
func AccountOf(spec *corev1alpha1.ObjectSetTemplateSpec, namespace, manager string) objects.Account {
	if spec.ServiceAccountName == "" {
		return objects.Account{}
	}
	return objects.Account{Namespace: cmp.Or(namespace, manager), Name: spec.ServiceAccountName}
}

// finalizers are ours. An earlier engine can have put either on any object.
var finalizers = []string{corev1alpha1.CachedFinalizer, corev1alpha1.MetricsFinalizer}

// Annotate sets an annotation of an object; an empty value removes it. The former map might be shared,
// and stays as it is.
func Annotate(obj metav1.Object, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, obj.GetAnnotations())
	if annotations[key] = value; value == "" {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
}

// ForeignFinalizers returns the finalizers of other controllers.
func ForeignFinalizers(obj metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return slices.Contains(finalizers, f) })
}
