package objectdiff

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

	"lockstep.run/lockstep/internal/phases/drift"
)

// Managers are the field managers of an object, with their fields.
type Managers map[string]*fieldpath.Set

// ManagersOf returns the managers of an object, without some, and without the managers of
// subresources.
func ManagersOf(u *unstructured.Unstructured, without ...string) Managers {
	found := Managers{}
	for _, entry := range u.GetManagedFields() {
		if slices.Contains(without, entry.Manager) || entry.Subresource != "" {
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

// Of returns the managers of a path that [Fields] returns, or of any field above or below it.
func (m Managers) Of(path string) []string {
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

// owns reports whether a set of fields has a path, or a field above or below it.
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

// elementFor returns the field of a set, or the list element that has the keys of
// [key=value,key=value].
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

// named reports whether a text consists of some of the keys, in any order. It is not split at
// commas, because values can contain them.
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

// firstPart matches the first part of a path: a field, a quoted key, or a list element.
var firstPart = regexp.MustCompile(`^(?:\.?([^.\[]+)|\[("(?:[^"\\]|\\.)*")\]|(\[[^\]]*\]))`)

// parts splits a path into fields and list elements in brackets.
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
