package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/claims"
)

// Target is a cluster that objects are rolled out to.
type Target struct {
	*engine.Engine
	// Cluster and home are the UIDs of the namespaces kube-system of the target and of
	// the cluster of our own kinds, where these are different ones; else they are empty.
	ID, Home types.UID
}

// Targets are the connections to other clusters.
type Targets interface {
	// Use keeps a target connected for a user. wake is called when its state or session
	// changed, and must not block.
	Use(user string, ref targets.Ref, wake func())
	Release(user string)
	// Find returns the session of a target, nil where there is none, and its state.
	Find(ref targets.Ref) (*Target, targets.State)
}

// NewTarget returns a target of an executor, from which its owners are enqueued.
func (r *Reconciler) NewTarget(e *engine.Engine, id, home types.UID) *Target {
	e.Tracker.Wake = r.enqueue
	e.Tracker.Served = func(gk schema.GroupKind, apiVersion string) bool {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return false
		}
		_, err = e.Cluster.Mapping(gk, gv.Version)
		return !meta.IsNoMatchError(err)
	}
	e.Exists = r.accountExists
	return &Target{Engine: e, ID: id, Home: home}
}

// namespaced is a objectsets.Scope. What it says is one answer of one moment: the kind may
// go between two questions.
func (t *Target) namespaced(gk schema.GroupKind, version string) (namespaced, known bool) {
	if t.Cluster == nil {
		return false, false
	}
	mapping, err := t.Cluster.Mapping(gk, version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// claimants are the owners that share a table of claims. In the cluster of our own kinds,
// whose UID is empty, that is all of them. In another one it is those of one namespace, or
// the cluster-scoped ones: which cluster it is, and what may be written there, says nobody
// but who answers there.
type claimants struct {
	cluster   types.UID
	namespace string
}

func claimantsOf(cluster types.UID, namespace string) claimants {
	if cluster == "" {
		namespace = ""
	}
	return claimants{cluster, namespace}
}

// ClaimsOf returns the claims to objects of a cluster, by its UID, that owners of a namespace
// share; the UID of the cluster of our own kinds is empty.
func (r *Reconciler) ClaimsOf(cluster types.UID, namespace string) *claims.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claimsOf(claimantsOf(cluster, namespace))
}

// claimsOf returns a table, made where there is none. r.mu is held.
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

// targetRef returns where the objects of the owner are; nil for the cluster of our own
// kinds. Sets that own objects decide.
func (s *reconciliation) targetRef() *corev1alpha1.TargetReference {
	for _, set := range slices.Backward(s.sets) {
		if objectsets.Owns(set) {
			return set.ObjectSetSpec().TargetRef
		}
	}
	if s.deployment != nil {
		return s.deployment.ObjectDeploymentSpec().Template.Spec.TargetRef
	}
	return s.sets[0].ObjectSetSpec().TargetRef
}

// connect returns the target of the owner, nil where there is no session, and with whom it
// shares the claims there, nil where it is not known which cluster it is. s.away is set
// where nothing can be done there.
func (s *reconciliation) connect() (*Target, *claimants) {
	if s.ref == nil {
		return s.Here, &claimants{}
	}
	var in *claimants
	recorded := s.recordedCluster()
	if recorded != "" && len(recorded) <= limits.ClusterUIDBytes {
		in = ptr.To(claimantsOf(recorded, s.key.Namespace))
	}
	if !s.restored {
		return &Target{Engine: &engine.Engine{Tracker: engine.NewTracker()}}, in
	}
	if s.letsGo() {
		return nil, in
	}
	if s.Targets == nil {
		s.away = &targets.State{Reason: corev1alpha1.ReasonUnsupported, Message: "Other clusters are not served here."}
		return nil, in
	}
	ref := targets.Ref{Namespace: s.secretNamespace(), Name: s.ref.KubeconfigSecretRef.Name, Key: s.ref.KubeconfigSecretRef.KeyOrDefault()}
	key, enqueue := s.key, s.enqueue
	s.Targets.Use(key.String(), ref, func() { enqueue(key) })
	session, state := s.Targets.Find(ref)
	deletes := s.top().GetDeletionTimestamp() != nil && state.Reason == corev1alpha1.ReasonKubeconfigMissing
	switch {
	case session == nil, !state.Ready && !deletes:
		s.away = &state
	case recorded != "" && recorded != session.ID:
		s.away = otherCluster(s.key.Kind)
		return nil, in
	}
	if session != nil && in == nil {
		in = ptr.To(claimantsOf(session.ID, s.key.Namespace))
	}
	return session, in
}

func otherCluster(kind string) *targets.State {
	return &targets.State{Reason: corev1alpha1.ReasonOtherCluster, Message: fmt.Sprintf(
		"The kubeconfig leads to another cluster than the one that has the objects: name that one. "+
			"If its former one was recreated, remove the annotation %s from the %s.", corev1alpha1.TargetClusterAnnotation, kind)}
}

// recordedCluster returns the UID of the cluster that may have objects of the owner; empty
// where nothing was written yet.
func (s *reconciliation) recordedCluster() types.UID {
	return types.UID(s.top().GetAnnotations()[corev1alpha1.TargetClusterAnnotation])
}

// recordCluster makes durable which cluster the objects are in, before the first set is
// created, and so before the first object is written.
func (s *reconciliation) recordCluster(ctx context.Context) error {
	if s.ref == nil || s.recordedCluster() != "" {
		return nil
	}
	return s.patch(ctx, s.top(), func() {
		annotations := s.top().GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1alpha1.TargetClusterAnnotation] = string(s.Target.ID)
		s.top().SetAnnotations(annotations)
	})
}

// errMoved is why nothing is done for a deployment whose template names another target.
var errMoved = errors.New("spec.template.spec.targetRef differs from that of the revisions, whose objects stay where they are: " +
	"put it back, or delete the deployment and create it again")

// moved reports whether the template names another target than the revisions.
func (s *reconciliation) moved() bool {
	return s.deployment != nil && !equality.Semantic.DeepEqual(s.deployment.ObjectDeploymentSpec().Template.Spec.TargetRef, s.ref)
}

// abandoned reports whether the owner is being deleted and leaves its objects in the target: what
// answers there, and whether anything does, is not asked.
func (s *reconciliation) abandoned() bool {
	return s.ref != nil && s.top().GetDeletionTimestamp() != nil && s.top().GetAnnotations()[corev1alpha1.AbandonTargetAnnotation] == "true"
}

// unwritten reports whether the owner is being deleted and has nothing in its target, so that this is not asked either: a set
// claims its objects before the first write, and the cluster is recorded before the first set. A set that is gone, which the
// status or a later set names, may have written, as may one of the deployment from before a restoration, which may have lost its
// status.
func (s *reconciliation) unwritten() bool {
	if s.ref == nil || s.top().GetDeletionTimestamp() == nil {
		return false
	}
	gone := func(ref corev1alpha1.PreviousRevisionReference) bool {
		return !slices.ContainsFunc(s.sets, func(set corev1alpha1.GenericObjectSet) bool { return set.GetName() == ref.Name })
	}
	written := func(set corev1alpha1.GenericObjectSet) bool {
		return !objectsets.Unwritten(set) || s.deployment != nil &&
			(objectsets.DeploymentOf(set) != s.deployment.GetUID() || slices.ContainsFunc(set.ObjectSetSpec().Previous, gone))
	}
	if len(s.sets) > 0 || s.recordedCluster() == "" {
		return !slices.ContainsFunc(s.sets, written)
	}
	status := s.deployment.ObjectDeploymentStatus()
	return status.Revision == 0 && len(status.ControllerOf) == 0
}

// letsGo reports whether the owner is being deleted, and nothing is asked of its target.
func (s *reconciliation) letsGo() bool { return s.abandoned() || s.unwritten() }

// letUnwrittenGo lets an owner go that has nothing in its target, after the API server was asked whether the cache is behind.
func (s *reconciliation) letUnwrittenGo(ctx context.Context) error {
	if unknown, err := s.hasUnknownSets(ctx); err != nil || unknown {
		s.requeue(conflictRetry)
		return err
	}
	for _, set := range s.sets {
		live := s.scope.NewObjectSet()
		var obj client.Object = live
		if ofPhase(s.key) {
			obj = s.scope.NewObjectSetPhase()
		}
		err := s.Reader.Get(ctx, client.ObjectKeyFromObject(set), obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", set.GetName(), err)
		}
		if phase, is := obj.(corev1alpha1.GenericObjectSetPhase); is {
			live = newPhaseSet(phase, s.ref)
		}
		if !objectsets.Unwritten(live) {
			s.requeue(conflictRetry)
			return nil
		}
	}
	if s.deployment != nil && s.recordedCluster() != "" { // else it is in doubt once its sets are gone
		err := s.patch(ctx, s.deployment, func() {
			annotations := maps.Clone(s.deployment.GetAnnotations())
			delete(annotations, corev1alpha1.TargetClusterAnnotation)
			s.deployment.SetAnnotations(annotations)
		})
		if err != nil {
			return err
		}
	}
	return s.finalize(ctx)
}

// hasUnknownSets reports whether the API server has sets of the deployment that the cache does not show yet.
func (s *reconciliation) hasUnknownSets(ctx context.Context) (bool, error) {
	if s.deployment == nil {
		return false, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(s.scope.Kind("ObjectSet") + "List"))
	err := s.Reader.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingLabels{corev1alpha1.ObjectDeploymentLabel: s.key.Name})
	if err != nil {
		return false, fmt.Errorf("cannot list the revisions of %s: %w", s.key, err)
	}
	return slices.ContainsFunc(list.Items, func(m metav1.PartialObjectMetadata) bool {
		return metav1.IsControlledBy(&m, s.deployment) && s.setOfUID(m.UID) == nil
	}), nil
}

// wait reports that the target is not connected.
func (s *reconciliation) wait(ctx context.Context) error {
	deleting := s.top().GetDeletionTimestamp() != nil
	if s.away.Connecting() {
		return nil // after a restart nothing has changed
	}
	top, generation := s.top(), s.top().GetGeneration()
	conds := slices.Clone(*top.StatusConditions())
	conditions.Set(&conds, generation, corev1alpha1.ConditionTargetConnected, false, s.away.Reason, s.away.Message)
	message := s.away.Message
	if deleting {
		message = fmt.Sprintf("The objects in the target are removed when it is connected. %s To leave them there, %s.", message, s.howToAbandon())
	}
	conditions.SetUnknown(&conds, generation, corev1alpha1.ConditionAvailable, s.away.Reason, message)
	conditions.Kstatus(&conds, generation, conditions.State{Stalled: s.away.Stalls(), Reason: s.away.Reason, Message: message})
	if equality.Semantic.DeepEqual(conds, *top.StatusConditions()) {
		return nil
	}
	return s.patchStatus(ctx, top, func() {
		*top.StatusConditions() = conds
		if deleting && s.deployment != nil {
			s.deployment.ObjectDeploymentStatus().ObservedGeneration = generation
		}
	})
}

// howToAbandon says how a user has the objects left in the target.
func (s *reconciliation) howToAbandon() string {
	what := "package"
	if ofPhase(s.key) {
		what = s.key.Kind
	}
	return fmt.Sprintf("annotate the %s with %s=true", what, corev1alpha1.AbandonTargetAnnotation)
}

// notRemoved says why objects in the target are not removed, and how they are left there.
func (s *reconciliation) notRemoved(why string) string {
	return fmt.Sprintf("the objects in the target cannot be removed (to leave them there, %s): %s", s.howToAbandon(), why)
}

// setTarget reports that the target is connected; owners without one have no condition.
func (s *reconciliation) setTarget(conds *[]metav1.Condition, generation int64) {
	if s.ref == nil {
		return
	}
	conditions.Set(conds, generation, corev1alpha1.ConditionTargetConnected, true, corev1alpha1.ReasonTargetConnected, "The target is connected.")
}
