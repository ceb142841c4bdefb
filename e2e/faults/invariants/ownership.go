package invariants

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// Ownership judges invariant 6 at the end of a step: no object in the namespace has an
// archived or a deleted controller, the engine only controls objects whose names the step's
// To contains, and archived sets claim no objects. It checks ConfigMaps and the kinds in
// others. The client there reads them from the cluster of the objects, which can be a
// different one than reader's.
func Ownership(ctx context.Context, reader, there client.Reader, step Step, namespace string, others ...schema.GroupVersionKind) ([]Violation, error) {
	owners, found, err := ownersIn(ctx, reader, step, namespace)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for o := range step.To {
		want[o.Name] = true
	}
	for _, gvk := range append([]schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}, others...) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := there.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			ref := controllerOf(obj)
			if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group != corev1alpha1.GroupVersion.Group {
				continue
			}
			switch owner := owners[string(ref.UID)]; {
			case owner == "":
				found = append(found, step.violation(6, "%s %s is controlled by %s %s, which does not exist", gvk.Kind, obj.GetName(), ref.Kind, ref.Name))
			case owner == archived:
				found = append(found, step.violation(6, "%s %s is controlled by the archived %s", gvk.Kind, obj.GetName(), ref.Name))
			case !want[obj.GetName()]:
				found = append(found, step.violation(6, "%s %s is still controlled by %s, and the active revision does not contain it", gvk.Kind, obj.GetName(), ref.Name))
			}
		}
	}
	return found, nil
}

// controllerOf returns the controller of an object in the same or in another cluster, or nil.
func controllerOf(obj *unstructured.Unstructured) *objects.Reference {
	return (&objects.Observed{Owners: apinames.Default.References(obj.GetOwnerReferences(), obj.GetAnnotations())}).Controller()
}

const (
	archived = "archived"
	living   = "living"
)

// ownersIn returns which UIDs are owners, and judges the sets themselves.
func ownersIn(ctx context.Context, reader client.Reader, step Step, namespace string) (map[string]string, []Violation, error) {
	owners := map[string]string{}
	var found []Violation
	var sets corev1alpha1.ObjectSetList
	var deployments corev1alpha1.ObjectDeploymentList
	if err := reader.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	if err := reader.List(ctx, &sets, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	for i := range deployments.Items {
		owners[string(deployments.Items[i].UID)] = living
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		owners[string(set.UID)] = living
		if set.Spec.LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived {
			continue
		}
		owners[string(set.UID)] = archived
		if n := len(set.Status.ControllerOf); n > 0 {
			found = append(found, step.violation(6, "%s is archived, and its status lists %d controlled objects", set.Name, n))
		}
	}
	return owners, found, nil
}
