package applies_test

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// assignment is a value at a path such as spec/ports/[port=80,protocol=UDP]/name: a segment in
// brackets is the element of a list with these fields.
type assignment struct {
	path  []string
	value any
}

// assignments reads lines of the form PATH = YAML.
func assignments(text string) []assignment {
	var all []assignment
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		path, value, found := strings.Cut(line+" ", " = ")
		if !found {
			panic("no assignment: " + line)
		}
		all = append(all, assignment{segments(path), parse(value)})
	}
	return all
}

// segments splits a path at slashes that are not in brackets.
func segments(path string) []string {
	var all []string
	depth, begin := 0, 0
	for i, r := range path {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == '/' && depth == 0:
			all = append(all, unescaped(path[begin:i]))
			begin = i + 1
		}
	}
	return append(all, unescaped(path[begin:]))
}

// unescaped replaces ~1 in a segment with a slash, as in a JSON pointer.
func unescaped(segment string) string { return strings.ReplaceAll(segment, "~1", "/") }

func parse(text string) any {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return integers(value)
}

// integers turns whole numbers into int64, as decoding of objects does.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

// fieldsOf returns the fields of a segment in brackets; nil for the name of a field.
func fieldsOf(segment string) map[string]any {
	if !strings.HasPrefix(segment, "[") {
		return nil
	}
	fields := map[string]any{}
	for pair := range strings.SplitSeq(strings.Trim(segment, "[]"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		fields[name] = parse(value)
	}
	return fields
}

func hasFields(element any, fields map[string]any) bool {
	m, ok := element.(map[string]any)
	for name, value := range fields {
		ok = ok && reflect.DeepEqual(m[name], value)
	}
	return ok
}

// assign sets a value at a path of another one, and creates missing parents.
func assign(of any, path []string, value any) any {
	fields := fieldsOf(path[0])
	if fields == nil {
		m, ok := of.(map[string]any)
		if !ok {
			m = map[string]any{}
		}
		m[path[0]] = below(m[path[0]], path[1:], value)
		return m
	}
	list, _ := of.([]any)
	for i := range list {
		if hasFields(list[i], fields) {
			list[i] = element(below(list[i], path[1:], value), fields)
			return list
		}
	}
	return append(list, element(below(nil, path[1:], value), fields))
}

func below(of any, rest []string, value any) any {
	if len(rest) == 0 {
		return copied(value)
	}
	return assign(of, rest, value)
}

func element(value any, fields map[string]any) any {
	m, ok := value.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for name, v := range fields {
		m[name] = v
	}
	return m
}

// erase removes the value at a path, and a list that is empty then.
func erase(of any, path []string) any {
	fields := fieldsOf(path[0])
	if fields == nil {
		m, ok := of.(map[string]any)
		if !ok {
			return of
		}
		child, has := m[path[0]]
		switch {
		case !has:
		case len(path) == 1:
			delete(m, path[0])
		default:
			m[path[0]] = erase(child, path[1:])
			if list, is := m[path[0]].([]any); is && len(list) == 0 {
				delete(m, path[0])
			}
		}
		return m
	}
	list, _ := of.([]any)
	left := make([]any, 0, len(list))
	for _, e := range list {
		switch {
		case !hasFields(e, fields):
			left = append(left, e)
		case len(path) > 1:
			left = append(left, erase(e, path[1:]))
		}
	}
	return left
}

func copied(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k := range v {
			m[k] = copied(v[k])
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = copied(v[i])
		}
		return list
	}
	return value
}
