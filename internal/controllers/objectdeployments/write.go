package objectdeployments

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
)

// patch changes an object of ours by a merge patch that fails if the object has changed since it
// was read.
func (s *reconciliation) patch(ctx context.Context, obj corev1alpha1.Conditioned, change func()) error {
	if err := s.Fresh.Change(ctx, s.Client, apiObject(obj), change); err != nil {
		return fmt.Errorf("cannot change %s: %w", obj.GetName(), err)
	}
	return nil
}

// annotate sets an annotation of an object of ours; an empty value removes it.
func (s *reconciliation) annotate(ctx context.Context, obj corev1alpha1.Conditioned, key, value string) error {
	return s.patch(ctx, obj, func() { objectsets.Annotate(obj, key, value) })
}

func (s *reconciliation) patchStatus(ctx context.Context, obj corev1alpha1.Conditioned, change func()) error {
	change()
	if phase, is := obj.(Phase); is {
		phase.Flush()
	}
	if err := statuswriter.Write(ctx, s.Client, apiObject(obj)); err != nil {
		return fmt.Errorf("cannot write the status of %s: %w", obj.GetName(), err)
	}
	s.Fresh.Put(apiObject(obj))
	s.of(obj.GetUID()).reported = s.Now()
	return nil
}

// metadataOf returns the metadata that identifies a state of a set.
func (s *reconciliation) metadataOf(set corev1alpha1.GenericObjectSet) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.GetNamespace(), Name: set.GetName(), UID: set.GetUID(), ResourceVersion: set.GetResourceVersion(),
		Finalizers: set.GetFinalizers(), DeletionTimestamp: set.GetDeletionTimestamp(),
	}}
	m.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(s.scope.Kind("ObjectSet")))
	return m
}

// ensureFinalizer puts our finalizer on, so that teardown is ours.
func (s *reconciliation) ensureFinalizer(ctx context.Context) error {
	obj := s.top()
	if slices.Contains(obj.GetFinalizers(), corev1alpha1.CachedFinalizer) {
		return nil
	}
	return s.patch(ctx, obj, func() { obj.SetFinalizers(append(obj.GetFinalizers(), corev1alpha1.CachedFinalizer)) })
}

// removeFinalizers releases an object of ours that is being deleted.
func (s *reconciliation) removeFinalizers(ctx context.Context, obj corev1alpha1.Conditioned) error {
	rest := objectsets.ForeignFinalizers(obj)
	if finalized(obj) {
		return nil
	}
	err := s.patch(ctx, obj, func() { obj.SetFinalizers(rest) })
	if apply.IsAbsent(err) {
		err = nil
	}
	if err == nil && len(rest) == 0 {
		s.Fresh.Deleted(obj.GetUID())
	}
	return err
}

// dropSet deletes a set that owns no objects.
func (s *reconciliation) dropSet(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	return s.drop(ctx, s.metadataOf(set))
}

// drop deletes an object of ours that is not needed. The writes require the state that showed this,
// or the state after another client's write: a late request of a process that does not lead any more
// is refused if its successor has used the object. It first removes the finalizers, and deletes the
// object under the resourceVersion of that answer.
func (s *reconciliation) drop(ctx context.Context, obj *metav1.PartialObjectMetadata) error {
	err := s.stripFinalizers(ctx, obj)
	if err != nil || obj.DeletionTimestamp != nil {
		return err
	}

	err = s.retryOnConflict(ctx, obj, func() error {
		required := client.Preconditions{UID: ptr.To(obj.UID)}
		if obj.ResourceVersion != "" {
			required.ResourceVersion = ptr.To(obj.ResourceVersion)
		}
		return s.Client.Delete(ctx, obj, required, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	if err != nil {
		return fmt.Errorf("cannot delete %s: %w", obj.Name, err)
	}

	s.Fresh.Deleted(obj.UID)
	return nil
}

// stripFinalizers takes our finalizers off an object.
func (s *reconciliation) stripFinalizers(ctx context.Context, obj *metav1.PartialObjectMetadata) error {
	err := s.retryOnConflict(ctx, obj, func() error {
		if finalized(obj) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": obj.UID, "resourceVersion": obj.ResourceVersion, "finalizers": objectsets.ForeignFinalizers(obj),
		}})
		if err != nil {
			return err
		}
		return s.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return fmt.Errorf("cannot take the finalizers off %s: %w", obj.Name, err)
	}
	if obj.DeletionTimestamp != nil {
		s.Fresh.Deleted(obj.UID)
	}

	return nil
}

// retryOnConflict repeats a write after reading the object. It ends if the object no longer exists.
func (s *reconciliation) retryOnConflict(ctx context.Context, obj *metav1.PartialObjectMetadata, write func() error) error {
	for attempt := 1; ; attempt++ {
		err := write()
		if apply.IsAbsent(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == limits.ConflictAttempts {
			return err
		}
		live := &metav1.PartialObjectMetadata{TypeMeta: obj.TypeMeta}
		err = s.Reader.Get(ctx, client.ObjectKeyFromObject(obj), live)
		if apply.IsAbsent(err) || err == nil && live.UID != obj.UID {
			return nil
		}
		if err != nil {
			return err
		}
		live.TypeMeta = obj.TypeMeta
		*obj = *live
	}
}

// finalized reports whether the object has none of our finalizers, so it only waits for other
// controllers.
func finalized(obj metav1.Object) bool {
	return len(objectsets.ForeignFinalizers(obj)) == len(obj.GetFinalizers())
}
