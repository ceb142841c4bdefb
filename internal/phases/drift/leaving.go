package drift

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Leaving returns what an apply makes of an object whose managedFields are rewritten by
// the patch of [Migration] before: its dry run alone does not show which fields it removes.
// dry is the response to that dry run, and migrated what the patch made of managedFields,
// with our entry last. The object returned lacks the fields that are ours alone and have
// left the template; values that the API server then defaults are not known here. removed
// is false where nothing leaves; then the object is dry itself.
func Leaving(dry *unstructured.Unstructured, migrated []metav1.ManagedFieldsEntry) (after *unstructured.Unstructured, removed bool, err error) {
	if len(migrated) == 0 {
		return dry, false, nil
	}
	others, ours := migrated[:len(migrated)-1], &migrated[len(migrated)-1]
	owned, err := fieldsOf(ours)
	if err != nil {
		return nil, false, err
	}
	kept, err := keptFields(dry.GetManagedFields(), others)
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
func keptFields(entries, others []metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	kept := fieldpath.NewSet()
	for i := range entries {
		if isApply(&entries[i]) {
			others = append(others[:len(others):len(others)], entries[i])
		}
	}
	for i := range others {
		fields, err := fieldsOf(&others[i])
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

// remove returns a value without what is at a path; it is changed in place, except
// for lists.
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

// Fields returns what a manager's entry in managedFields says that it owns.
func Fields(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) { return fieldsOf(&entry) }
