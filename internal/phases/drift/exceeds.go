package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"lockstep.run/lockstep/internal/objects"
)

// Exceeds reports whether the engine has applied a field that the template lacks, by the Apply entry in managedFields:
// that of a former content, which the next apply removes. Owner references do not count, nor does an entry in another
// version of the API, or one that cannot be read.
func Exceeds(names *objects.Names, template map[string]any, managedFields []metav1.ManagedFieldsEntry) bool {
	exceeds := false
	for i := range managedFields {
		entry := &managedFields[i]
		if !isApply(names, entry) || entry.APIVersion != template["apiVersion"] {
			continue
		}
		fields, err := Fields(*entry)
		if err != nil {
			continue
		}
		for path := range fields.All() { // to the end: it does not allow a break
			exceeds = exceeds || !isOwnerReference(path) && !states(template, path)
		}
	}
	return exceeds
}

// states reports whether a template has a field, null included.
func states(template any, path fieldpath.Path) bool {
	if template == nil || len(path) == 0 {
		return true
	}
	element, rest := path[0], path[1:]
	if element.FieldName != nil {
		fields, _ := template.(map[string]any)
		child, has := fields[*element.FieldName]
		return has && states(child, rest)
	}
	list, _ := template.([]any)
	return slices.ContainsFunc(list, func(candidate any) bool { return isElement(candidate, element) && states(candidate, rest) })
}
