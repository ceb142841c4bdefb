package objectdeployments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

const agentPatience = time.Minute // for an agent in a namespace that is being deleted, possibly along with the agent

// tearDown removes the objects that a deleted owner controls, in reverse, and its finalizers. It
// releases objects that the garbage collector has missed, because the collector does not know kinds
// that were installed within the last half minute.
func (s *reconciliation) tearDown(ctx context.Context) error {
	want := s.kept()
	want.Teardown, want.Orphan = true, objectsets.Orphaned(s.top())
	if gone, err := s.remove(ctx, want); err != nil || !gone {
		return err
	}
	return s.finalize(ctx)
}

// archiveAlone removes the objects of a lone set that its user archived.
func (s *reconciliation) archiveAlone(ctx context.Context) error {
	set := s.sets[0]
	if !objectsets.Owns(set) {
		return nil
	}
	if gone, err := s.remove(ctx, s.want()); err != nil || !gone {
		return err
	}
	return s.markArchived(ctx, set)
}

// remove removes the objects of the owner, and reports whether all of them are removed.
func (s *reconciliation) remove(ctx context.Context, want engine.Want) (gone bool, err error) {
	began := s.Now()
	for range limits.DeploymentPasses {
		if err := s.load(ctx); err != nil {
			return false, err
		}
		if want.Teardown {
			for _, rev := range s.rollout.Revisions() { // the ancestors may have changed since loading
				if err := s.rejectReserved(ctx, rev); err != nil {
					return false, err
				}
			}
		}
		out, err := s.step(ctx, want)
		if err != nil || out.TornDown {
			return out.TornDown, err
		}
		if !out.Again {
			return false, errors.Join(s.letGo(ctx), s.reportTeardown(ctx))
		}
		if s.Now().Sub(began) >= limits.StatusInterval {
			if err := s.reportTeardown(ctx); err != nil {
				return false, err
			}
		}
	}

	s.Requeue(0)
	return false, s.reportTeardown(ctx)
}

// recheckUnwritten asks the API server whether a cache is behind that shows an owner without
// objects in its target.
func (s *reconciliation) recheckUnwritten(ctx context.Context) error {
	if unknown, err := s.hasUnknownSets(ctx); err != nil || unknown {
		s.Requeue(limits.ConflictRetry)
		return cmp.Or(err, queueing.ErrEnd)
	}

	for _, set := range s.sets {
		live := s.scope.NewObjectSet()
		var obj client.Object = live
		if s.phase != nil {
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
			live = s.Phases.SetOf(phase)
		}
		if !objectsets.Unwritten(live) {
			s.Requeue(limits.ConflictRetry)
			return queueing.ErrEnd
		}
	}

	return nil
}

// forgetCluster removes the record of the target from a deployment that has nothing there: without
// its sets, it would be in doubt.
func (s *reconciliation) forgetCluster(ctx context.Context) error {
	if s.deployment == nil || s.recordedCluster() == "" {
		return nil
	}
	return s.annotate(ctx, s.deployment, corev1alpha1.TargetClusterAnnotation, "")
}

// hasUnknownSets reports whether the API server has sets of the deployment that the cache does not
// show yet.
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

// finalize removes the sets and slices of a deployment and its finalizers, which are no longer
// needed.
func (s *reconciliation) finalize(ctx context.Context) error {
	if s.deployment != nil {
		all, err := s.obsoleteSlices(ctx, nil)
		if err != nil {
			return err
		}
		if err := s.dropSets(ctx, s.sets, all); err != nil {
			return err
		}
	}

	if err := s.removeFinalizers(ctx, s.top()); err != nil {
		return err
	}

	s.forget(s.key)
	return nil
}

// namespaceLook is the interval at which a teardown that waits for an agent looks whether
// the namespace is being deleted, too.
const namespaceLook = 30 * time.Second

// letGo removes the engine's finalizers from ObjectSetPhases that wait for their agent in a
// namespace that is being deleted. It does so some time after their deletion, because the agent
// might have been deleted with the namespace.
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
	namespace, err := metadata(ctx, s.Reader, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: key.Namespace})
	if err != nil || namespace == nil {
		return err
	}
	if namespace.DeletionTimestamp == nil {
		s.Requeue(namespaceLook)
		return nil
	}

	phase, err := s.readMetadata(ctx, key.Kind, key.Name)
	if err != nil || phase == nil || phase.DeletionTimestamp == nil || finalized(phase) {
		return err
	}

	if s.Wait(phase.DeletionTimestamp.Add(agentPatience).Sub(s.Now())) {
		return nil
	}
	return s.stripFinalizers(ctx, phase)
}

// goWithOwners deletes the owner object in the background if a foreign owner of it is deleted in
// the foreground. A foreign owner that cannot be watched is reported, and does not block anything.
func (s *reconciliation) goWithOwners(ctx context.Context) error {
	ref, problem, again := s.Owners.Follow(s.key, s.top().GetOwnerReferences())
	s.ownerProblem = problem
	s.Wait(again)
	if ref == nil {
		return nil
	}

	err := s.Client.Delete(ctx, apiObject(s.top()), client.Preconditions{UID: ptr.To(s.top().GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("cannot delete %s, whose owner %s %s is being deleted: %w", s.key, ref.Kind, ref.Name, err)
	}
	return queueing.ErrEnd
}
