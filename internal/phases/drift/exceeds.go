package drift

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/objects"
)

// Exceeds reports whether the Apply entry in managedFields shows that the engine has applied a
// field that the template lacks. Such a field belongs to a former content, and the next apply
// removes it. Owner references do not count, nor does an entry that is unreadable or in another
// version of the API.
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
		for path := range fields.All() { // to the end, because the iterator does not support a break
			exceeds = exceeds || !isOwnerReference(path) && !hasPath(template, path, true)
		}
	}

	return exceeds
}
