package diagnose

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

const webhooksExamined = 500

// obstacle finds the package's own policy or webhook that denied a write, and that a later phase
// removes or changes.
func (e *explainer) obstacle(ctx context.Context, message string) (objects.Key, bool, error) {
	denial, denied := apply.DeniedBy(message)
	if !denied || e.deployment == nil {
		return objects.Key{}, false, nil
	}
	for _, kind := range denial.Kinds() {
		key := objects.Key{Group: "admissionregistration.k8s.io", Kind: kind}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: key.Group, Version: e.version(key), Kind: kind + "List"})
		own := client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}
		err := e.client.List(ctx, list, own, client.Limit(webhooksExamined))
		if err = readable(kind, err); err != nil && !meta.IsNoMatchError(err) {
			return key, false, err
		}
		for i := range list.Items {
			live := &list.Items[i]
			key.Name = live.GetName()
			ref := metav1.GetControllerOf(live)
			if ref == nil || ref.UID != e.deployment.GetUID() || !denial.Is(key, live) {
				continue
			}
			stays, err := e.desires(ctx, key, live)
			return key, !stays, err
		}
	}
	return objects.Key{}, false, nil
}

// desires reports whether the newest revision has an object as it is.
func (e *explainer) desires(ctx context.Context, key objects.Key, live *unstructured.Unstructured) (bool, error) {
	if e.set == nil {
		return true, nil
	}
	for _, phase := range e.set.ObjectSetSpec().Phases {
		stored := phase.Objects
		for _, name := range phase.Slices {
			slice := corev1alpha1.ScopeOf(e.set.GetNamespace()).NewObjectSlice()
			if err := e.client.Get(ctx, client.ObjectKey{Namespace: e.set.GetNamespace(), Name: name}, slice); err != nil {
				return true, readable("a slice of the newest revision", err)
			}
			stored = append(stored[:len(stored):len(stored)], *slice.SliceObjects()...)
		}
		for _, o := range stored {
			u := &unstructured.Unstructured{}
			if json.Unmarshal(o.Object.Raw, &u.Object) != nil || u.GetKind() != key.Kind || u.GetName() != key.Name {
				continue
			}
			delete(u.Object, "metadata")
			return drift.Matches(u.Object, live.Object, nil), nil
		}
	}
	return false, nil
}
