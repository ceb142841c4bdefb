package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// teardown removes what a deleted owner controls, in reverse, and removes its finalizers.
func (s *reconciliation) teardown(ctx context.Context) error {
	if objectsets.Orphaning(s.top()) {
		// The garbage collector takes the references off; its last write, on the
		// owner's finalizers, comes back here.
		return s.markOrphaned(ctx, s.top())
	}
	if err := s.findOrphaned(ctx); err != nil {
		return err
	}
	for range maxPasses {
		if err := s.load(ctx); err != nil {
			return err
		}
		if err := s.rejectAllReserved(ctx); err != nil {
			return err
		}
		// What the garbage collector has missed is released: it does not know kinds that
		// were installed within the last half minute.
		want := s.kept()
		want.Teardown, want.Orphan = true, objectsets.Orphaned(s.top())
		out, err := s.step(ctx, want)
		switch {
		case err != nil:
			return err
		case out.TornDown:
			return s.finalize(ctx)
		case !out.Again:
			return errors.Join(s.letGo(ctx), s.reportTeardown(ctx))
		}
	}
	s.requeue(1)
	return s.reportTeardown(ctx)
}

// archiveAlone tears a lone set down that its user archived.
func (s *reconciliation) archiveAlone(ctx context.Context) error {
	set := s.sets[0]
	if !objectsets.Owns(set) {
		return nil
	}
	for range maxPasses {
		if err := s.load(ctx); err != nil {
			return err
		}
		out, err := s.step(ctx, s.want())
		switch {
		case err != nil:
			return err
		case out.TornDown:
			return s.markArchived(ctx, set)
		case !out.Again:
			return errors.Join(s.letGo(ctx), s.reportTeardown(ctx))
		}
	}
	s.requeue(1)
	return s.reportTeardown(ctx)
}

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

// finalize removes the sets and slices of a deployment and takes the finalizers
// off: nothing is left that needs them.
func (s *reconciliation) finalize(ctx context.Context) error {
	if s.deployment != nil {
		for _, set := range s.sets {
			if err := s.dropSet(ctx, set); err != nil {
				return err
			}
		}
		if err := s.dropSlices(ctx, nil); err != nil {
			return err
		}
	}
	if err := s.removeFinalizers(ctx, s.top()); err != nil {
		return err
	}
	s.forget()
	return nil
}

// namespaceLook is the interval at which a teardown that waits for an agent looks whether the
// namespace goes, too.
const namespaceLook = 30 * time.Second

// letGo removes the engine's finalizers from ObjectSetPhases that wait for their agent in a
// namespace that is being deleted, some time after they were: the agent may have gone with it.
func (s *reconciliation) letGo(ctx context.Context) error {
	if s.key.Namespace == "" || s.Target.Cluster == nil {
		return nil
	}
	for _, rev := range s.rollout.Revisions() {
		for _, agent := range s.agents(rev) {
			if agent.Live == nil || !agent.Live.Terminating || agent.Class() == corev1alpha1.PhaseClassDefault {
				continue
			}
			if err := s.letPhaseGo(ctx, agent.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *reconciliation) letPhaseGo(ctx context.Context, key objects.Key) error {
	namespace, phase := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	phase.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(key.Kind))
	if err := s.Reader.Get(ctx, types.NamespacedName{Name: key.Namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		s.requeue(namespaceLook)
		return nil
	}
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, phase)
	if err != nil || phase.DeletionTimestamp == nil || finalized(phase) {
		return client.IgnoreNotFound(err)
	}
	if rest := phase.DeletionTimestamp.Add(limits.AgentPatience).Sub(s.Now()); rest > 0 {
		s.requeue(rest)
		return nil
	}
	return s.stripFinalizers(ctx, phase)
}

// ownerTerminating deletes the owner object in the background where a foreign owner of
// it is deleted in the foreground, and reports whether it did. A foreign owner that cannot
// be watched is reported, and is in the way of nothing.
func (s *reconciliation) ownerTerminating(ctx context.Context) (bool, error) {
	ref, problem, again := s.Owners.Follow(s.key, s.top().GetOwnerReferences())
	s.ownerProblem = problem
	if again > 0 {
		s.requeue(again)
	}
	if ref == nil {
		return false, nil
	}
	err := s.Client.Delete(ctx, apiObject(s.top()), client.Preconditions{UID: ptr.To(s.top().GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apply.IsAbsent(err) {
		return false, fmt.Errorf("cannot delete %s, whose owner %s %s is being deleted: %w", s.key, ref.Kind, ref.Name, err)
	}
	return true, nil
}
