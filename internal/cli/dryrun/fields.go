package dryrun

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Differences returns the fields that differ, with their current managers, except for fields that
// the API server and the engine maintain. Values of Secrets are hidden.
func Differences(before, after *unstructured.Unstructured) []Field {
	var fields []Field
	others := objectdiff.ManagersOf(before, corev1alpha1.LegacyFieldManagers()...)
	types := drift.LearnListTypes(slices.Concat(before.GetManagedFields(), after.GetManagedFields()))
	for _, c := range objectdiff.Fields(withoutBookkeeping(before), withoutBookkeeping(after), types.Keys) {
		fields = append(fields, Field{c, others.Of(c.Path)})
	}
	return fields
}

// withoutBookkeeping returns a shallow copy of an object without its status, and without the
// metadata that the API server or the engine maintains.
func withoutBookkeeping(u *unstructured.Unstructured) map[string]any {
	obj := maps.Clone(u.Object)
	delete(obj, "status")
	meta, _ := obj["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, field := range []string{
		"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
		"ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		delete(meta, field)
	}

	without(meta, "labels", corev1alpha1.CacheLabel, corev1alpha1.PackageLabel, corev1alpha1.PackageInstanceLabel,
		corev1alpha1.PackageVersionLabel, corev1alpha1.PackageProviderLabel)
	without(meta, "annotations", corev1alpha1.RevisionAnnotation, corev1alpha1.OwnersAnnotation, corev1alpha1.AdoptableByAnnotation)
	obj["metadata"] = meta
	return obj
}

// without deletes keys of a map of metadata, and the map itself once it is empty. It copies the map
// first, because the object shares it.
func without(meta map[string]any, field string, keys ...string) {
	values, _ := meta[field].(map[string]any)
	values = maps.Clone(values)
	for _, key := range keys {
		delete(values, key)
	}
	// The API server omits an empty map, so it must not count as a difference.
	if len(values) == 0 {
		delete(meta, field)
		return
	}
	meta[field] = values
}
