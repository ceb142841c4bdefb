package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
)

// referenceSlices makes sets owners of the slices that were written for them, for tools
// that follow owner references. A slice gets one such reference, also where later
// revisions share it. Each pass patches a few: a gate may be due after.
func (s *reconciliation) referenceSlices(ctx context.Context) error {
	if len(s.unreferenced) == 0 {
		return nil
	}
	due := s.dueReferences()
	if len(due) > 0 {
		s.Requeue(0)
	}
	group, ctx := panics.NewGroup(ctx, limits.SlicesInFlight, "referring to slices")
	var mu sync.Mutex
	for _, r := range due {
		group.Go(func() error {
			now, err := s.referenceSlice(ctx, r.set, r.slice)
			mu.Lock()
			defer mu.Unlock()
			if s.unreferenced[r.slice.Name] = now; now == nil {
				delete(s.unreferenced, r.slice.Name)
			}
			return err
		})
	}
	return group.Wait()
}

// reference is a set that becomes an owner of a slice.
type reference struct {
	set   corev1alpha1.GenericObjectSet
	slice *metav1.PartialObjectMetadata
}

// referencesAtOnce bounds how many references one pass puts on slices.
const referencesAtOnce = 64

// dueReferences returns the references of one pass, each slice once.
func (s *reconciliation) dueReferences() []reference {
	var due []reference
	begun := map[string]bool{}
	for _, set := range s.sets {
		if !objectsets.Owns(set) || set.GetDeletionTimestamp() != nil {
			continue
		}
		for _, name := range slicesOf(set) {
			slice := s.unreferenced[name]
			if slice == nil || begun[name] {
				continue
			}
			if len(due) == referencesAtOnce {
				return due
			}
			begun[name] = true
			due = append(due, reference{set, slice})
		}
	}
	return due
}

// referenceSlice returns the slice where it has to be retried, after a conflict as it is
// live.
func (s *reconciliation) referenceSlice(
	ctx context.Context, set corev1alpha1.GenericObjectSet, slice *metav1.PartialObjectMetadata,
) (*metav1.PartialObjectMetadata, error) {
	slice.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(s.scope.Kind("ObjectSlice")))
	after := slice.DeepCopy()
	after.OwnerReferences = append(after.OwnerReferences, metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: s.scope.Kind("ObjectSet"), Name: set.GetName(), UID: set.GetUID(),
	})
	err := s.Client.Patch(ctx, after, client.MergeFromWithOptions(slice, client.MergeFromWithOptimisticLock{}))
	if err != nil && apply.Classify(err) == apply.Conflict {
		// Or the response to an earlier attempt was lost.
		err = s.Reader.Get(ctx, client.ObjectKeyFromObject(slice), slice)
		if err == nil && !slices.ContainsFunc(slice.OwnerReferences, s.isSet) {
			return slice, nil
		}
	}
	if err == nil || apply.IsAbsent(err) {
		return nil, nil
	}
	return slice, fmt.Errorf("cannot make %s an owner of slice %s: %w", set.GetName(), slice.Name, err)
}
