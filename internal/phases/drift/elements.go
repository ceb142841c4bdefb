package drift

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/value"

	"lockstep.run/lockstep/internal/objects/listkeys"
)

// finder finds the elements of an associative list by their keys.
type finder struct {
	live []any
	keys []string
	// next is where the search starts, because lists mostly have the order of the template.
	next int
	// index finds elements of long lists by their key values.
	index map[string][]int
	// found is the usual result of find.
	found [1]int
}

// longList is the length from which an index pays off.
const longList = 32

// allKeyed reports whether every element of a template is a map with at least one key.
func allKeyed(template []any, keys []string) bool {
	for _, element := range template {
		fields, isMap := element.(map[string]any)
		if !isMap || !hasKey(fields, keys) {
			return false
		}
	}
	return true
}

func hasKey(fields map[string]any, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return fields[key] != nil })
}

// find returns the indices of the live elements with the keys of element, usually one. The API
// server defaults a key that the template leaves out: find prefers the element with the common
// default, and otherwise returns all elements that agree in the other keys. The result is valid
// until the next call.
func (f *finder) find(element map[string]any) []int {
	if f.complete(element) {
		return f.findComplete(element)
	}
	if found := f.all(element, true); len(found) > 0 {
		return found
	}
	return f.all(element, false)
}

func (f *finder) all(element map[string]any, strict bool) []int {
	found := f.found[:0]
	for i := range f.live {
		if f.matches(element, i, strict) {
			found = append(found, i)
		}
	}
	return found
}

func (f *finder) complete(element map[string]any) bool {
	return !slices.ContainsFunc(f.keys, func(key string) bool { return element[key] == nil })
}

func (f *finder) findComplete(element map[string]any) []int {
	if f.next < len(f.live) && f.matches(element, f.next, true) {
		return f.at(f.next)
	}
	if len(f.live) >= longList {
		return f.lookup(element)
	}

	for i := range f.live {
		if f.matches(element, i, true) {
			return f.at(i)
		}
	}

	return nil
}

func (f *finder) lookup(element map[string]any) []int {
	if f.index == nil {
		f.index = make(map[string][]int, len(f.live))
		for i := range f.live {
			if fields, isMap := f.live[i].(map[string]any); isMap {
				key := f.indexKey(fields)
				f.index[key] = append(f.index[key], i)
			}
		}
	}

	found := f.index[f.indexKey(element)]
	if len(found) == 0 {
		return nil
	}

	return f.at(found[0])
}

func (f *finder) at(i int) []int {
	f.next, f.found[0] = i+1, i
	return f.found[:]
}

func (f *finder) indexKey(fields map[string]any) string {
	var e encoder
	for _, key := range f.keys {
		e.value(fields[key])
	}
	return string(e.buf)
}

// matches compares the keys of element with a live element's. strict requires the default if the
// template leaves a key out.
func (f *finder) matches(element map[string]any, i int, strict bool) bool {
	fields, isMap := f.live[i].(map[string]any)
	if !isMap {
		return false
	}

	for _, key := range f.keys {
		want := element[key]
		if want == nil && strict {
			want = listkeys.Default(key)
		}
		if want == nil {
			if strict && fields[key] != nil {
				return false
			}
			continue
		}
		if !same(want, fields[key]) {
			return false
		}
	}

	return true
}

// same compares decoded JSON, and numbers by value.
func same(a, b any) bool {
	return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
}
