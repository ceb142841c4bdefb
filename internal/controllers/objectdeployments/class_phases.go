package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// agentRetry is the interval at which an ObjectSetPhase is polled whose finalizer the
// agent of another cluster has to remove: they are not watched.
const agentRetry = 5 * time.Second

// deleteClassPhases deletes the ObjectSetPhases that Package Operator created for the
// phases of a set that have a class, in reverse, and reports whether all are gone. The
// objects of the default class are gone by now; those of other classes are deleted by
// their agent, which then removes its finalizer.
func (s *reconciliation) deleteClassPhases(ctx context.Context, set corev1alpha1.GenericObjectSet) (gone bool, err error) {
	for _, phase := range slices.Backward(set.ObjectSetSpec().Phases) {
		if phase.Class == "" {
			continue
		}
		left, err := s.deleteClassPhase(ctx, set, phase.Name, phase.Class)
		if err != nil {
			return false, err
		}
		if left != nil {
			s.awaitAgent(left, phase.Name, phase.Class)
			return false, nil
		}
	}
	return true, nil
}

// deleteClassPhase deletes one ObjectSetPhase, and returns it until it is gone.
func (s *reconciliation) deleteClassPhase(
	ctx context.Context, set corev1alpha1.GenericObjectSet, name, class string,
) (left *metav1.PartialObjectMetadata, err error) {
	phase := &metav1.PartialObjectMetadata{}
	phase.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(s.scope.Kind("ObjectSetPhase")))
	key := types.NamespacedName{Namespace: set.GetNamespace(), Name: set.GetName() + "-" + name}
	err = s.Reader.Get(ctx, key, phase)
	if apply.IsAbsent(err) || err == nil && !metav1.IsControlledBy(phase, set) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read ObjectSetPhase %s: %w", key, err)
	}
	if phase.DeletionTimestamp == nil {
		err := s.Client.Delete(ctx, phase, client.Preconditions{UID: ptr.To(phase.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apply.IsAbsent(err) {
			return nil, fmt.Errorf("cannot delete ObjectSetPhase %s: %w", key, err)
		}
	}
	if class == corev1alpha1.PhaseClassDefault && !finalized(phase) {
		if err := s.stripFinalizers(ctx, phase); err != nil {
			return nil, err
		}
	}
	if err := s.Reader.Get(ctx, key, phase); err == nil || !apply.IsAbsent(err) {
		return phase, err
	}
	return nil, nil
}

// awaitAgent requeues the owner, and reports the ObjectSetPhase as blocking.
func (s *reconciliation) awaitAgent(phase *metav1.PartialObjectMetadata, name, class string) {
	s.requeue(agentRetry)
	if len(s.plan.Reports) == 0 {
		return
	}
	report := &s.plan.Reports[len(s.plan.Reports)-1]
	report.Blocking = append(report.Blocking, phases.Blocker{
		Key: objects.Key{
			Group: corev1alpha1.GroupVersion.Group, Kind: s.scope.Kind("ObjectSetPhase"), Namespace: phase.Namespace, Name: phase.Name,
		},
		Phase: name, Kind: phases.BlockWait, NeverReady: true, // it does not affect availability
		Message: fmt.Sprintf("is being deleted and has the finalizers %v: the agent of the class %q has to take its objects away and let it go. "+
			"Where there is no such agent any more, remove the finalizers", phase.Finalizers, class),
	})
}
