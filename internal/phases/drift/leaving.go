package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"lockstep.run/lockstep/internal/objects"
)

// Leaving returns what an apply makes of an object whose managedFields are rewritten by
// the patch of [Migration] before. dry is the response to its dry run, which does not show
// the fields that it removes; migrated are the rewritten managedFields, with the engine's
// entry last. Values that the API server then defaults are not in the result. It is dry
// itself where no field is removed.
func Leaving(names *objects.Names, dry *unstructured.Unstructured, migrated []metav1.ManagedFieldsEntry) (after *unstructured.Unstructured, removed bool, err error) {
	if len(migrated) == 0 {
		return dry, false, nil
	}
	others := migrated[:len(migrated)-1]
	owned, err := Fields(migrated[len(migrated)-1])
	if err != nil {
		return nil, false, err
	}
	kept, err := keptFields(names, dry.GetManagedFields(), others)
	if err != nil {
		return nil, false, err
	}
	after = dry.DeepCopy()
	var object any = after.Object
	for path := range owned.All() {
		if !holds(kept, path) {
			object = remove(object, path)
			removed = true
		}
	}
	return after, removed, nil
}

// keptFields are those of the template that is applied, and those of others.
func keptFields(names *objects.Names, entries, others []metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	kept := fieldpath.NewSet()
	applied := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool { return !isApply(names, &entry) })
	for _, entry := range slices.Concat(others, applied) {
		fields, err := Fields(entry)
		if err != nil {
			return nil, err
		}
		kept = kept.Union(fields)
	}
	return kept, nil
}

// holds reports whether a set has a path, or one below it.
func holds(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

// remove returns a value without the part at a path. Maps are changed in place.
func remove(of any, path fieldpath.Path) any {
	element, rest := path[0], path[1:]
	if element.FieldName != nil {
		fields, isMap := of.(map[string]any)
		if !isMap {
			return of
		}
		if child, has := fields[*element.FieldName]; has && len(rest) > 0 {
			fields[*element.FieldName] = remove(child, rest)
		} else if has {
			delete(fields, *element.FieldName)
		}
		return of
	}
	list, isList := of.([]any)
	if !isList {
		return of
	}
	left := make([]any, 0, len(list))
	for _, candidate := range list {
		switch {
		case !isElement(candidate, element):
			left = append(left, candidate)
		case len(rest) > 0:
			left = append(left, remove(candidate, rest))
		}
	}
	return left
}
