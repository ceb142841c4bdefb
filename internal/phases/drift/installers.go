package drift

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"lockstep.run/lockstep/internal/objects"
)

// installers are the field managers of commands that write whole objects from files. Engines do not
// use these names.
var installers = []string{
	"kubectl-client-side-apply", // kubectl apply
	"kubectl",                   // kubectl apply --server-side
	"kubectl-last-applied",      // the annotation that it keeps for kubectl apply
	"kubectl-create",
	"kubectl-replace",
	"helm", // by updates up to Helm 3, by applies since Helm 4
	"kapp",
}

// HasInstaller reports whether managedFields have an entry of a command that installs objects.
// [Migration] takes its fields over at adoption.
func HasInstaller(names *objects.Names, managedFields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool { return isInstaller(names, &entry) })
}

func isInstaller(names *objects.Names, entry *metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" && (slices.Contains(installers, entry.Manager) || slices.Contains(names.Installers, entry.Manager))
}

// leftToInstaller returns the fields that the template lacks and that either others rely on or kept
// lists.
func leftToInstaller(fields *fieldpath.Set, template map[string]any, kept []string) *fieldpath.Set {
	left := fieldpath.NewSet()
	for path := range fields.All() {
		if (isReliedOn(path) || isWithin(path, kept)) && !hasPath(template, path, false) {
			left.Insert(path.Copy())
		}
	}
	return left
}

// isReliedOn reports whether others rely on a field: status, finalizers, owner references, and
// replicas, which an autoscaler owns only after it has changed them.
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

// isWithin reports whether a path is at or below one of fields, such as spec.template. A path in an
// element of a list means the list.
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

// Installed returns the values of an object that its installers wrote, as a template without lists.
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
				_ = unstructured.SetNestedField(template, value, to...) // fails below a value that is already set
			}
		}
	}

	return template
}
