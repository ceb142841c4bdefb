package objectdeployments

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
)

// targetRef returns the cluster of the owner's objects; nil for the cluster of our own kinds. Sets
// that own objects decide.
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

// connect returns the target of the owner, nil if there is no session, and the owners that share
// its claims there, nil if the cluster is not known. It sets s.away if the target cannot be used.
func (s *reconciliation) connect() (*Target, *claimants) {
	if s.ref == nil {
		return s.Here, &claimants{}
	}

	var in *claimants
	recorded := s.recordedCluster()
	if recorded != "" && len(recorded) <= limits.ClusterUIDBytes {
		in = ptr.To(claimantsOf(recorded, s.key.Namespace))
	}
	// The restoration of claims only loads revisions, because the cluster might not answer.
	if !s.restored {
		return &Target{Engine: &engine.Engine{Tracker: tracking.New(apinames.Default)}}, in
	}
	if s.letsGo() {
		return nil, in
	}

	if s.Targets == nil {
		s.away = &targets.State{Reason: corev1alpha1.ReasonUnsupported, Message: "Other clusters are not served here."}
		return nil, in
	}

	ref := targets.RefOf(s.secretNamespace(), s.ref)
	key, enqueue := s.key, s.enqueue
	s.Targets.Use(key.String(), ref, func() { enqueue(key) })
	session, state := s.Targets.Find(ref)
	// A deletion can still use the open session of a deleted Secret.
	deletes := s.top().GetDeletionTimestamp() != nil && state.Reason == corev1alpha1.ReasonKubeconfigMissing
	switch {
	case session == nil, !state.Ready && !deletes:
		s.away = &state
	case recorded != "" && recorded != session.ID:
		s.away = &targets.State{Reason: corev1alpha1.ReasonOtherCluster, Message: fmt.Sprintf(
			"The kubeconfig leads to another cluster than the one with the objects: name the latter. "+
				"If its former one was recreated, remove the annotation %s from the %s.", corev1alpha1.TargetClusterAnnotation, s.key.Kind)}
		return nil, in
	}

	if session != nil && in == nil {
		in = ptr.To(claimantsOf(session.ID, s.key.Namespace))
	}
	return session, in
}

// recordedCluster returns the UID of the cluster that might have objects of the owner; empty if
// none were written yet.
func (s *reconciliation) recordedCluster() types.UID {
	return types.UID(s.top().GetAnnotations()[corev1alpha1.TargetClusterAnnotation])
}

// recordClusterOfSets makes durable which cluster the objects of sets are in that were not created
// by this process.
func (s *reconciliation) recordClusterOfSets(ctx context.Context) error {
	if len(s.sets) == 0 {
		return nil
	}
	return s.recordCluster(ctx)
}

// recordCluster makes durable which cluster the objects are in, before the first set is
// created, and so before the first object is written.
func (s *reconciliation) recordCluster(ctx context.Context) error {
	if s.ref == nil || s.recordedCluster() != "" {
		return nil
	}
	return s.annotate(ctx, s.top(), corev1alpha1.TargetClusterAnnotation, string(s.Target.ID))
}

// prepareTarget is recordCluster before the creation of a set. Until the first set in another
// cluster exists, an orphaning deletion leaves no trace, so the deployment is marked meanwhile.
func (s *reconciliation) prepareTarget(ctx context.Context) error {
	if s.ref == nil || len(s.sets) > 0 || objectsets.Orphaned(s.deployment) {
		return s.recordCluster(ctx)
	}
	return s.patch(ctx, s.deployment, func() {
		objectsets.Annotate(s.deployment, corev1alpha1.TargetClusterAnnotation, string(s.Target.ID))
		objectsets.Annotate(s.deployment, corev1alpha1.OrphanedAnnotation, corev1alpha1.OrphanedTakingBack)
	})
}

// abandoned reports whether the owner is being deleted and leaves its objects in the target. The
// target is then not contacted, so it does not matter whether it answers.
func (s *reconciliation) abandoned() bool {
	return s.ref != nil && s.top().GetDeletionTimestamp() != nil && s.top().GetAnnotations()[corev1alpha1.AbandonTargetAnnotation] == "true"
}

// unwritten reports whether the owner is being deleted and has no objects in its target, so that
// the target is not contacted: a set claims its objects before the first write, and the cluster is
// recorded before the first set. A deleted set that the status or a later set names might have
// written. So might a set of the deployment from before a restoration, which might have lost its
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

// letsGo reports whether the owner is being deleted without contacting its target.
func (s *reconciliation) letsGo() bool { return s.abandoned() || s.unwritten() }

// howToAbandon describes how a user makes the owner leave the objects in the target.
func (s *reconciliation) howToAbandon() string {
	what := "package"
	if s.phase != nil {
		what = s.key.Kind
	}
	return fmt.Sprintf("annotate the %s with %s=true", what, corev1alpha1.AbandonTargetAnnotation)
}

// notRemoved describes why objects in the target are not removed, and how to leave them there.
func (s *reconciliation) notRemoved(why string) string {
	return fmt.Sprintf("the objects in the target cannot be removed (to leave them there, %s): %s", s.howToAbandon(), why)
}

// NewTarget returns a target that an engine rolls out to. Its owners are enqueued by wake, and
// their accounts are read from the cluster of our own kinds. id and home are the fields of Target.
func NewTarget(e *engine.Engine, reader client.Reader, wake func(objects.OwnerKey), id, home types.UID) *Target {
	e.Tracker.Wake = wake
	e.Tracker.Served = func(gk schema.GroupKind, apiVersion string) bool {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return false
		}
		_, err = e.Cluster.Mapping(gk, gv.Version)
		return !meta.IsNoMatchError(err)
	}

	e.Exists = func(ctx context.Context, account objects.Account) (bool, error) {
		m, err := metadata(ctx, reader, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), types.NamespacedName{Namespace: account.Namespace, Name: account.Name})
		return err == nil && m != nil && m.DeletionTimestamp == nil, err
	}
	return &Target{Engine: e, ID: id, Home: home}
}
