package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// installers are the field managers of commands that write whole objects from files, and
// that of annotations which are for the adoption alone.
var installers = []string{
	"kubectl-client-side-apply", // kubectl apply
	"kubectl",                   // kubectl apply --server-side
	"kubectl-last-applied",      // the annotation that it keeps for the former
	"kubectl-create",
	"kubectl-replace",
	corev1alpha1.HandoverFieldManager,
	"helm", // by updates up to Helm 3, by applies from Helm 4 on
	"kapp",
}

// HasInstaller reports whether managedFields hold an entry of a command that installs
// objects, which [Migration] takes over at adoption.
func HasInstaller(managedFields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool { return isInstaller(&entry) })
}

// Installers returns the field managers of which [Migration] takes fields over at adoption, sorted.
func Installers(managedFields []metav1.ManagedFieldsEntry) []string {
	var names []string
	for i := range managedFields {
		if isInstaller(&managedFields[i]) {
			names = append(names, managedFields[i].Manager)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isInstaller(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" && slices.Contains(installers, entry.Manager)
}

// leftToInstaller returns the fields that the template lacks and that others rely on.
func leftToInstaller(fields *fieldpath.Set, template map[string]any) *fieldpath.Set {
	left := fieldpath.NewSet()
	for path := range fields.All() {
		if isReliedOn(path) && !hasPath(template, path) {
			left.Insert(path.Copy())
		}
	}
	return left
}

// isReliedOn reports whether others rely on a field: status, finalizers and owner
// references, and replicas, which an autoscaler owns only once it has changed them.
func isReliedOn(path fieldpath.Path) bool {
	if isField(path[0], "status") {
		return true
	}
	if len(path) < 2 {
		return false
	}
	return isField(path[0], "metadata") && (isField(path[1], "finalizers") || isField(path[1], "ownerReferences")) ||
		isField(path[0], "spec") && isField(path[1], "replicas")
}
