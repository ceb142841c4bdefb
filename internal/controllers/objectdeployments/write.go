package objectdeployments

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
)

// patch changes an object of ours by a merge patch that fails where the object
// is not the one that was read.
func (s *reconciliation) patch(ctx context.Context, obj corev1alpha1.Conditioned, change func()) error {
	before := apiObject(obj.DeepCopyObject().(corev1alpha1.Conditioned))
	change()
	if err := s.fresh.Patch(ctx, s.Client, before, apiObject(obj)); err != nil {
		return fmt.Errorf("cannot change %s: %w", obj.GetName(), err)
	}
	return nil
}

// finalizers of ours, of this engine and of an earlier one.
var finalizers = []string{corev1alpha1.CachedFinalizer, corev1alpha1.MetricsFinalizer}

// ensureFinalizer puts our finalizer on, so that teardown is ours.
func (s *reconciliation) ensureFinalizer(ctx context.Context, obj corev1alpha1.Conditioned) error {
	if slices.Contains(obj.GetFinalizers(), corev1alpha1.CachedFinalizer) {
		return nil
	}
	return s.patch(ctx, obj, func() { obj.SetFinalizers(append(obj.GetFinalizers(), corev1alpha1.CachedFinalizer)) })
}

// removeFinalizers lets an object of ours go that is being deleted.
func (s *reconciliation) removeFinalizers(ctx context.Context, obj corev1alpha1.Conditioned) error {
	rest := foreignFinalizers(obj)
	if finalized(obj) {
		return nil
	}
	err := s.patch(ctx, obj, func() { obj.SetFinalizers(rest) })
	if apply.IsAbsent(err) {
		err = nil
	}
	if err == nil && len(rest) == 0 {
		s.fresh.Deleted(obj.GetUID())
	}
	return err
}

// stripFinalizers takes our finalizers off an object whose present state is not
// known, because its deletion was just asked for.
func (s *reconciliation) stripFinalizers(ctx context.Context, obj metav1.Object) error {
	rest := foreignFinalizers(obj)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "finalizers": rest}})
	if err != nil {
		return err
	}
	err = s.Client.Patch(ctx, obj.(client.Object), client.RawPatch(types.MergePatchType, patch))
	if err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("cannot take the finalizers off %s: %w", obj.GetName(), err)
	}
	s.fresh.Deleted(obj.GetUID())
	return nil
}

func foreignFinalizers(obj metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return slices.Contains(finalizers, f) })
}

// finalized reports whether nothing of ours holds the object: what it still waits for
// is not ours.
func finalized(obj metav1.Object) bool {
	return len(foreignFinalizers(obj)) == len(obj.GetFinalizers())
}
