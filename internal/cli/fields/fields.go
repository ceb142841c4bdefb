// Package fields reads nested values of objects in the form of JSON. A value that is
// missing, or of another type, is the zero value.
package fields

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Get returns the value at a path.
func Get(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// Text returns a string.
func Text(v any, path ...string) string {
	s, _ := Get(v, path...).(string)
	return s
}

// Bool returns a boolean.
func Bool(v any, path ...string) bool {
	b, _ := Get(v, path...).(bool)
	return b
}

// Map returns a mapping.
func Map(v any, path ...string) map[string]any {
	m, _ := Get(v, path...).(map[string]any)
	return m
}

// List returns a list.
func List(v any, path ...string) []any {
	list, _ := Get(v, path...).([]any)
	return list
}

// Maps returns the mappings in a list.
func Maps(v any, path ...string) []map[string]any {
	var out []map[string]any
	for _, item := range List(v, path...) {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// Texts returns the items of a list as text.
func Texts(v any, path ...string) []string {
	var out []string
	for _, item := range List(v, path...) {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

// Keys returns the sorted keys of a mapping.
func Keys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Walk visits a value and all values below it, with their keys. An item has the key of its list.
// visit may replace values of the mapping that it gets.
func Walk(v any, visit func(parent map[string]any, key string, value any)) {
	var walk func(parent map[string]any, key string, v any)
	walk = func(parent map[string]any, key string, v any) {
		visit(parent, key, v)
		switch v := v.(type) {
		case map[string]any:
			for _, key := range Keys(v) {
				walk(v, key, v[key])
			}
		case []any:
			for _, item := range v {
				walk(nil, key, item)
			}
		}
	}

	walk(nil, "", v)
}

// PodSpec returns the specification of the pods of a Pod or a workload, and its path.
func PodSpec(object map[string]any) (spec map[string]any, path string) {
	path = "spec.template.spec"
	switch object["kind"] {
	case "Pod":
		path = "spec"
	case "CronJob":
		path = "spec.jobTemplate.spec.template.spec"
	}
	return Map(object, strings.Split(path, ".")...), path
}

// Containers visits the containers of a Pod or a workload, with the path of their list.
func Containers(object map[string]any, visit func(path, list string, container map[string]any)) {
	spec, path := PodSpec(object)
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range Maps(spec, list) {
			visit(path+"."+list, list, c)
		}
	}
}
