package objects

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// IgnoredFields are the paths of fields of one object that others own. The engine writes them when
// it creates the object and leaves them alone afterwards. A path names an element of a list by its
// position in the template. In another object this is the element of the same name or, if it has no
// name, the element at that position.
type IgnoredFields [][]string

// ParseIgnoredFields reads the value of IgnoredFieldsAnnotation: JSON pointers (RFC 6901), one per
// line.
func (n *Names) ParseIgnoredFields(text string) (IgnoredFields, error) {
	var out IgnoredFields
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(out) == limits.IgnoredFields {
			return nil, fmt.Errorf("more than %d fields: name a field that holds several of them", limits.IgnoredFields)
		}
		path, err := n.ParseFieldPointer(line)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}

	return out, nil
}

// ParseFieldPointer reads a JSON pointer to a field that others can own.
func (n *Names) ParseFieldPointer(pointer string) ([]string, error) {
	if len(pointer) > limits.FieldPointerBytes {
		return nil, fmt.Errorf("a JSON pointer of %d bytes; the limit is %d", len(pointer), limits.FieldPointerBytes)
	}

	fail := func(format string, args ...any) ([]string, error) {
		return nil, fmt.Errorf("%q "+format, append([]any{pointer}, args...)...)
	}
	if !strings.HasPrefix(pointer, "/") {
		return fail("is not a JSON pointer to a field: write it as /spec/replicas")
	}

	path := strings.Split(pointer[1:], "/")
	if len(path) > limits.FieldPointerDepth {
		return fail("has %d parts; the limit is %d", len(path), limits.FieldPointerDepth)
	}

	for i, part := range path {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(part); strings.Contains(rest, "~") {
			return fail("has a ~ that is followed by neither 0 nor 1: write ~ as ~0, and / within a key as ~1")
		}
		if part == "" || part == "-" {
			return fail("has the part %q, which does not name a field", part)
		}
		path[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}

	switch path[0] {
	case "apiVersion", "kind":
		return fail("identifies the object, so others cannot own it")
	case "status":
		return fail("is never written: leave it out")
	case "stringData":
		return fail("is not stored: name /data/KEY")
	case "metadata":
		if len(path) != 3 || path[1] != "labels" && path[1] != "annotations" {
			return fail("is in the metadata, where others can own only single labels and annotations: /metadata/labels/KEY")
		}
		if domain, _, _ := strings.Cut(path[2], "/"); domain == n.GroupVersion.Group || strings.HasSuffix(domain, "."+n.GroupVersion.Group) {
			return fail("is set by the engine, so others cannot own it")
		}
	}

	return path, nil
}

// FieldPointer returns the JSON pointer of a path.
func FieldPointer(path []string) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// Check returns an error if a path ends at an element of a list of the template, because leaving
// out an element would move the others.
func (f IgnoredFields) Check(template map[string]any) error {
	for _, path := range f {
		var at any = template
		for i, part := range path {
			if _, isList := at.([]any); isList && i == len(path)-1 {
				return fmt.Errorf("%q is an element of a list: name a field in it, or the whole list", FieldPointer(path))
			}
			at = child(at, part)
		}
	}
	return nil
}

// Without returns an object without the fields. The object can be the template itself. Only the
// changed parts are copied.
func (f IgnoredFields) Without(template, object map[string]any) map[string]any {
	for _, path := range f {
		object = replaced(template, object, path, nil, false).(map[string]any)
	}
	return object
}

// Keep returns a template with the live object's values of the fields, so that applying it does not
// change them. It leaves out a field that others own, if the field stays without the engine stating
// it. It keeps the template's value of a field that the live object does not have yet, such as one
// in a new element of a list. It does not change its arguments.
func (f IgnoredFields) Keep(template, live map[string]any, owned func(path []string) bool) map[string]any {
	result := template
	for _, path := range f {
		value, found, in := lookup(template, live, path)
		if in {
			result = replaced(template, result, path, value, found && !owned(path)).(map[string]any)
		}
	}
	return result
}

// child returns the value of one part of a path, or nil if it is missing.
func child(of any, part string) any {
	switch of := of.(type) {
	case map[string]any:
		return of[part]
	case []any:
		if i, ok := position(part); ok && i < len(of) {
			return of[i]
		}
	}
	return nil
}

func position(part string) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == part
}

// element returns the position in list of the element that part names in the list of the template.
func element(template any, list []any, part string) (int, bool) {
	i, ok := position(part)
	if !ok {
		return 0, false
	}

	if wanted, isMap := child(template, part).(map[string]any); isMap {
		if name, named := wanted["name"].(string); named {
			i = slices.IndexFunc(list, func(candidate any) bool {
				fields, _ := candidate.(map[string]any)
				return fields["name"] == name
			})
		}
	}

	return i, i >= 0 && i < len(list)
}

// FieldAt returns the element of list that part names in the list of the template.
func FieldAt(template any, list []any, part string) (any, bool) {
	i, ok := element(template, list, part)
	if !ok {
		return nil, false
	}
	return list[i], true
}

// lookup returns the value at a path. in reports whether the object has the parent of the field.
func lookup(template, object any, path []string) (value any, found, in bool) {
	switch o := object.(type) {
	case map[string]any:
		value, found = o[path[0]]
		if len(path) == 1 {
			return value, found, true
		}
		return lookup(child(template, path[0]), value, path[1:])
	case []any:
		if i, ok := element(template, o, path[0]); ok && len(path) > 1 {
			return lookup(child(template, path[0]), o[i], path[1:])
		}
	}

	return nil, false, false
}

// replaced returns an object with another value at a path, or without one unless keep is set. It
// changes nothing if the object lacks the parent of the field.
func replaced(template, object any, path []string, value any, keep bool) any {
	switch o := object.(type) {
	case map[string]any:
		before, found := o[path[0]]
		if len(path) > 1 {
			if !found {
				return o
			}
			value, keep = replaced(child(template, path[0]), before, path[1:], value, keep), true
		}
		o = maps.Clone(o)
		if o[path[0]] = value; !keep {
			delete(o, path[0])
		}
		return o
	case []any:
		i, ok := element(template, o, path[0])
		if !ok || len(path) == 1 {
			return o
		}
		o = slices.Clone(o)
		o[i] = replaced(child(template, path[0]), o[i], path[1:], value, keep)
		return o
	}

	return object
}
