package manifest

import (
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// CheckIgnoredFields reports the problems of spec.ignoredFields of a manifest or of a Package.
func CheckIgnoredFields(all []corev1alpha1.IgnoredFields, report func(field, remedy, format string, args ...any)) {
	if len(all) > limits.IgnoredEntries {
		report("spec.ignoredFields", "Name several fields in one entry.", "%d entries; the limit is %d", len(all), limits.IgnoredEntries)
		return
	}

	for i := range all {
		field := fmt.Sprintf("spec.ignoredFields[%d]", i)
		if all[i].Kind == "" {
			report(field+".kind", "Name the group and the kind of the objects.", "Required value")
		}
		switch n := len(all[i].JSONPointers); {
		case n == 0:
			report(field+".jsonPointers", "List at least one field.", "Required value")
		case n > limits.IgnoredFields:
			report(field+".jsonPointers", "Name a field that holds several of them.", "%d fields; the limit is %d", n, limits.IgnoredFields)
			continue
		}
		for j, pointer := range all[i].JSONPointers {
			if _, err := apinames.Default.ParseFieldPointer(pointer); err != nil {
				report(fmt.Sprintf("%s.jsonPointers[%d]", field, j), "", "%v", err)
			}
		}
	}
}
