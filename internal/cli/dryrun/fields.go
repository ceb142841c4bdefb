package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Differences returns the fields that differ, with the managers that have them now, except
// those that the API server and the engine maintain. Values of Secrets are hidden.
func Differences(before, after *unstructured.Unstructured) []Field {
	var fields []Field
	others := managersOf(before)
	types, kind := drift.NewListTypes(), before.GroupVersionKind().GroupKind()
	for _, u := range []*unstructured.Unstructured{before, after} {
		types.Learn(kind, u.GetManagedFields())
	}
	for _, c := range objectdiff.Fields(withoutBookkeeping(before), withoutBookkeeping(after), types.Of(kind).Keys) {
		fields = append(fields, Field{Path: c.Path, Before: c.Before, After: c.After, Managers: others.of(c.Path)})
	}
	return fields
}

func withoutBookkeeping(u *unstructured.Unstructured) map[string]any {
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
	without(meta, "annotations", corev1alpha1.RevisionAnnotation, corev1alpha1.OwnersAnnotation, corev1alpha1.AdoptableByAnnotation)
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

// managers are the field managers of an object, without the engine.
type managers map[string]*fieldpath.Set

func managersOf(u *unstructured.Unstructured) managers {
	found := managers{}
	for _, entry := range u.GetManagedFields() {
		engine := entry.Manager == corev1alpha1.FieldManager || slices.Contains(corev1alpha1.LegacyFieldManagers(), entry.Manager)
		if engine || entry.Subresource != "" {
			continue
		}
		set, err := drift.Fields(entry)
		if err != nil {
			continue
		}
		if had := found[entry.Manager]; had != nil {
			set = set.Union(had)
		}
		found[entry.Manager] = set
	}
	return found
}

// of returns the managers of a path of package objectdiff, or of anything above or below.
func (m managers) of(path string) []string {
	elements, ok := parts(path)
	if !ok {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if owns(m[name], elements) {
			names = append(names, name)
		}
	}
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

// elementFor returns the field of a set, or the list element that has the keys of [key=value,key=value].
func elementFor(set *fieldpath.Set, part string) (fieldpath.PathElement, bool) {
	if !strings.HasPrefix(part, "[") {
		return fieldpath.PathElement{FieldName: &part}, true
	}
	wanted := strings.TrimSuffix(part[1:], "]")
	elements := slices.AppendSeq(slices.Collect(set.Children.All()), set.Members.All())
	i := slices.IndexFunc(elements, func(e fieldpath.PathElement) bool {
		return e.Key != nil && named(*e.Key, wanted)
	})
	if i < 0 {
		return fieldpath.PathElement{}, false
	}
	return elements[i], true
}

// named reports whether a text is made of some of the keys, in any order. It is not split at commas, which values may contain.
func named(keys value.FieldList, text string) bool {
	return slices.ContainsFunc(keys, func(key value.Field) bool {
		rest, begins := strings.CutPrefix(text, fmt.Sprintf("%s=%v", key.Name, key.Value.Unstructured()))
		if !begins || rest == "" {
			return begins
		}
		rest, more := strings.CutPrefix(rest, ",")
		return more && named(slices.DeleteFunc(slices.Clone(keys), func(k value.Field) bool { return k.Name == key.Name }), rest)
	})
}

var firstPart = regexp.MustCompile(`^(?:\.?([^.\[]+)|\[("(?:[^"\\]|\\.)*")\]|(\[[^\]]*\]))`)

// parts splits a path of package objectdiff: fields, and list elements in brackets.
func parts(path string) (found []string, ok bool) {
	for path != "" {
		m := firstPart.FindStringSubmatch(path)
		if m == nil {
			return nil, false
		}
		name, _ := strconv.Unquote(m[2])
		found, path = append(found, cmp.Or(m[1], name, m[3])), path[len(m[0]):]
	}
	return found, true
}
