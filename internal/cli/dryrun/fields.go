package dryrun

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Differences returns the fields in which an object differs before and after,
// without what the API server and the engine keep there for themselves, and who
// has them now. Values of Secrets are hidden.
func Differences(before, after *unstructured.Unstructured) []Field {
	var fields []Field
	others := managersOf(before)
	for _, c := range objectdiff.Fields(stated(before), stated(after)) {
		fields = append(fields, Field{Path: c.Path, Before: c.Before, After: c.After, Managers: others.of(c.Path)})
	}
	return fields
}

// stated returns an object without what says nothing about it.
func stated(u *unstructured.Unstructured) map[string]any {
	obj := maps.Clone(u.Object)
	delete(obj, "status")
	meta, _ := obj["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, field := range []string{
		"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
		"ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		delete(meta, field)
	}
	without(meta, "labels", corev1alpha1.CacheLabel, corev1alpha1.PackageLabel, corev1alpha1.PackageInstanceLabel,
		corev1alpha1.PackageVersionLabel, corev1alpha1.PackageProviderLabel)
	without(meta, "annotations", corev1alpha1.RevisionAnnotation, corev1alpha1.OwnersAnnotation)
	obj["metadata"] = meta
	return obj
}

func without(meta map[string]any, field string, keys ...string) {
	values, _ := meta[field].(map[string]any)
	values = maps.Clone(values)
	for _, key := range keys {
		delete(values, key)
	}
	if len(values) == 0 {
		delete(meta, field)
		return
	}
	meta[field] = values
}

// managers are the field managers of an object beside the engine.
type managers map[string]*fieldpath.Set

func managersOf(u *unstructured.Unstructured) managers {
	found := managers{}
	for _, entry := range u.GetManagedFields() {
		ours := entry.Manager == corev1alpha1.FieldManager || slices.Contains(corev1alpha1.LegacyFieldManagers(), entry.Manager)
		if ours || entry.Subresource != "" {
			continue
		}
		set, err := drift.Fields(entry)
		if err != nil {
			continue // it is shown without its manager
		}
		if had := found[entry.Manager]; had != nil {
			set = set.Union(had)
		}
		found[entry.Manager] = set
	}
	return found
}

// of returns who has the field at a path of package objectdiff, something below
// it, or the whole that it is a part of.
func (m managers) of(path string) []string {
	var names []string
	elements, ok := parts(path)
	if !ok {
		return nil
	}
	for name, set := range m {
		if owns(set, elements) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func owns(set *fieldpath.Set, path []string) bool {
	for _, part := range path {
		element, found := elementFor(set, part)
		if !found {
			return false
		}
		below := set.WithPrefix(element)
		if set.Members.Has(element) && below.Empty() {
			return true
		}
		set = below
	}
	return !set.Empty()
}

// elementFor finds the element of a set that a part of a path means: a field, or
// an element of a list by one of its keys.
func elementFor(set *fieldpath.Set, part string) (fieldpath.PathElement, bool) {
	key, value, isElement := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(part, "["), "]"), "=")
	if !strings.HasPrefix(part, "[") || !isElement {
		return fieldpath.PathElement{FieldName: &part}, !strings.HasPrefix(part, "[")
	}
	is := func(e fieldpath.PathElement) bool {
		if e.Key == nil {
			return false
		}
		for _, field := range *e.Key {
			if field.Name == key && fmt.Sprint(field.Value.Unstructured()) == value {
				return true
			}
		}
		return false
	}
	for e := range set.Children.All() {
		if is(e) {
			return e, true
		}
	}
	for e := range set.Members.All() {
		if is(e) {
			return e, true
		}
	}
	return fieldpath.PathElement{}, false
}

// parts splits a path of package objectdiff: fields as they are, elements of lists
// in brackets. ok is false where it is no such path.
func parts(path string) (found []string, ok bool) {
	for path != "" {
		switch {
		case path[0] == '.':
			path = path[1:]
		case strings.HasPrefix(path, `["`):
			quoted, err := strconv.QuotedPrefix(path[1:])
			if err != nil {
				return nil, false
			}
			name, _ := strconv.Unquote(quoted)
			found, path = append(found, name), strings.TrimPrefix(path[1+len(quoted):], "]")
		case path[0] == '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return nil, false
			}
			found, path = append(found, path[:end+1]), path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			found, path = append(found, path[:end]), path[end:]
		}
	}
	return found, true
}
