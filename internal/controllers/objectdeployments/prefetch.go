package objectdeployments

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
)

// prefetchSlices lists the slices of the sets, where these are more than a few.
func (r *Reconciler) prefetchSlices(ctx context.Context, scope corev1alpha1.Scope, sets []corev1alpha1.GenericObjectSet) {
	wanted := map[types.NamespacedName]struct{}{}
	for _, set := range sets {
		for _, name := range slicesOf(set) {
			if objectsets.Owns(set) {
				wanted[types.NamespacedName{Namespace: set.GetNamespace(), Name: name}] = struct{}{}
			}
		}
	}
	if len(wanted) <= limits.SlicesAsked {
		return
	}
	if err := r.listSlices(ctx, scope, wanted); err != nil {
		log.FromContext(ctx).V(1).Info("slices are read one by one", "error", err.Error())
	}
}

func (r *Reconciler) listSlices(ctx context.Context, scope corev1alpha1.Scope, wanted map[types.NamespacedName]struct{}) error {
	for token := ""; ; {
		page := scope.NewObjectSliceList()
		if err := r.Reader.List(ctx, page.(client.ObjectList), client.Limit(limits.SlicePage), client.Continue(token)); err != nil {
			return fmt.Errorf("cannot list slices: %w", err)
		}
		for _, slice := range page.GenericObjectSlices() {
			key := types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetName()}
			if _, ok := wanted[key]; ok {
				r.prefetched[key] = slice
			}
		}
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}
