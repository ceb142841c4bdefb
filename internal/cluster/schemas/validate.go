package schemas

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const schemaRounds = 100 // of the search for unknown fields; each takes 50 µs and finds one per map

// Undeclared is the converter's message for an unknown field.
const Undeclared = "field not declared in schema"

// check returns the problems of an object. described reports whether there is a
// definition of its kind.
func (d *document) check(obj *unstructured.Unstructured) (described bool, err error) {
	gvk := obj.GroupVersionKind()
	converter := d.converter(gvk)
	if converter == nil {
		return false, nil
	}
	if fields := validate(converter, obj); len(fields) > 0 {
		return true, newInvalidError(fields, d, gvk)
	}
	return true, nil
}

// validate returns all problems of an object. The converter leaves a map at its first unknown
// field, so unknown fields are removed from a copy until it has seen the whole object.
func validate(converter managedfields.TypeConverter, obj *unstructured.Unstructured) []FieldError {
	_, err := converter.ObjectToTyped(obj)
	if err == nil {
		return nil
	}
	var unknown []FieldError
	rest := obj.DeepCopy()
	for range schemaRounds {
		found := fieldErrors(err)
		removed := false
		for _, field := range found {
			if field.Problem == Undeclared && remove(rest.Object, field.Path) {
				unknown, removed = append(unknown, field), true
			}
		}
		if !removed {
			return append(unknown, found...)
		}
		if _, err = converter.ObjectToTyped(rest); err == nil {
			return unknown
		}
	}

	return unknown
}

func fieldErrors(err error) []FieldError {
	var found typed.ValidationErrors
	if !errors.As(err, &found) {
		return []FieldError{{Problem: withoutValue(err.Error())}}
	}
	fields := make([]FieldError, len(found))
	for i, problem := range found {
		fields[i] = FieldError{Path: problem.Path, Problem: withoutValue(problem.ErrorMessage)}
	}

	return fields
}
