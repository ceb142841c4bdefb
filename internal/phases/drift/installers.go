package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"lockstep.run/lockstep/internal/objects"
)

// installers are the field managers of commands that write whole objects from files, and
// are no names of an engine.
var installers = []string{
	"kubectl-client-side-apply", // kubectl apply
	"kubectl",                   // kubectl apply --server-side
	"kubectl-last-applied",      // the annotation that it keeps for the former
	"kubectl-create",
	"kubectl-replace",
	"helm", // by updates up to Helm 3, by applies from Helm 4 on
	"kapp",
}

// HasInstaller reports whether managedFields hold an entry of a command that installs
// objects, which [Migration] takes over at adoption.
func HasInstaller(names *objects.Names, managedFields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool { return isInstaller(names, &entry) })
}

// Installers returns the field managers of which [Migration] takes fields over at adoption, sorted.
func Installers(names *objects.Names, managedFields []metav1.ManagedFieldsEntry) []string {
	var managers []string
	for i := range managedFields {
		if isInstaller(names, &managedFields[i]) {
			managers = append(managers, managedFields[i].Manager)
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

func isInstaller(names *objects.Names, entry *metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" && (slices.Contains(installers, entry.Manager) || slices.Contains(names.Installers, entry.Manager))
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
