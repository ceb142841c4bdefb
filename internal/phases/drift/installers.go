package drift

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// leftToInstaller returns the fields that the template lacks and that others rely on, or that are kept.
func leftToInstaller(fields *fieldpath.Set, template map[string]any, kept []string) *fieldpath.Set {
	left := fieldpath.NewSet()
	for path := range fields.All() {
		if (isReliedOn(path) || isWithin(path, kept)) && !hasPath(template, path) {
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

// isWithin reports whether a field is at or below one of others, such as spec.template. Of an element of a list,
// the list counts.
func isWithin(path fieldpath.Path, fields []string) bool {
	return slices.ContainsFunc(fields, func(field string) bool {
		field, _, _ = strings.Cut(field, "[")
		parts := strings.Split(field, ".")
		if len(path) < len(parts) {
			return false
		}
		for i, part := range parts {
			if !isField(path[i], part) {
				return false
			}
		}
		return true
	})
}

// Installed returns the values of an object that its installers wrote, as a template. Lists are left out.
func Installed(names *objects.Names, live *unstructured.Unstructured) map[string]any {
	template := map[string]any{}
	for _, entry := range live.GetManagedFields() {
		fields, err := Fields(entry)
		if err != nil || !isInstaller(names, &entry) {
			continue
		}
		for path := range fields.Leaves().All() {
			var to []string
			for _, element := range path {
				if element.FieldName == nil {
					to = nil
					break
				}
				to = append(to, *element.FieldName)
			}
			if value, has, err := unstructured.NestedFieldCopy(live.Object, to...); err == nil && has && len(to) > 0 {
				_ = unstructured.SetNestedField(template, value, to...) // fails below a value that is set already
			}
		}
	}
	return template
}
