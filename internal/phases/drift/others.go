package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"lockstep.run/lockstep/internal/objects"
)

// OwnedByOthers returns a function that reports whether a field manager other than the engine owns
// a field of a live object, or a part of it, so that the field stays if the engine does not apply
// it. Paths have the form of objects.IgnoredFields. A list that is owned as a whole has no
// separately owned parts. Unreadable entries do not count. adopting means that installers do not
// count either.
func OwnedByOthers(names *objects.Names, template map[string]any, live *unstructured.Unstructured, adopting bool) func(path []string) bool {
	var sets []*fieldpath.Set
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == names.FieldManager && entry.Subresource == "" || adopting && isInstaller(names, &entry) {
			continue
		}
		if fields, err := Fields(entry); err == nil {
			sets = append(sets, fields)
		}
	}

	return func(path []string) bool {
		return slices.ContainsFunc(sets, func(set *fieldpath.Set) bool { return ownsAt(set, template, live.Object, path) })
	}
}

func ownsAt(set *fieldpath.Set, template, live any, path []string) bool {
	element, next := fieldpath.PathElement{FieldName: &path[0]}, any(nil)
	switch live := live.(type) {
	case map[string]any:
		next = live[path[0]]
		if fields, isMap := template.(map[string]any); isMap {
			template = fields[path[0]]
		} else {
			template = nil
		}
	case []any:
		var found bool
		if next, found = objects.FieldAt(template, live, path[0]); !found {
			return false
		}
		template, _ = objects.FieldAt(template, asList(template), path[0])
		for candidate := range set.Children.All() {
			if isElement(next, candidate) {
				element = candidate
			}
		}
	default:
		return false
	}

	below, has := set.Children.Get(element)
	if len(path) == 1 {
		return set.Members.Has(element) || has && !below.Empty()
	}

	return has && ownsAt(below, template, next, path[1:])
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}
