package schemas

import (
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// step is one step of a path of the converter: a field, or an element of a list, such as
// [0], [name="x",port=80] or [="x"].
type step struct {
	field string
	// element is the text between the brackets; field is empty then.
	element   string
	isElement bool
}

// splitPath splits .a.b[name="x"].c; nil if the path is invalid.
func splitPath(path string) []step {
	var steps []step
	for len(path) > 0 {
		switch path[0] {
		case '.':
			end := strings.IndexAny(path[1:], ".[")
			if end < 0 {
				return append(steps, step{field: path[1:]})
			}
			steps, path = append(steps, step{field: path[1 : end+1]}), path[end+1:]
		case '[':
			end := endOf(path, ']')
			if end < 0 {
				return nil
			}
			steps, path = append(steps, step{element: path[1:end], isElement: true}), path[end+1:]
		default:
			return nil
		}
	}

	return steps
}

// unnamed replaces a part of a path.
const unnamed = "*"

// withoutValues returns a step to a list element without its key; an index stays.
func (s step) withoutValues() string {
	if strings.Trim(s.element, "0123456789") == "" {
		return "[" + s.element + "]"
	}
	return "[" + unnamed + "]"
}

// withoutElements returns a path without the keys of list elements, "" for a malformed one.
func withoutElements(path string) string {
	var b strings.Builder
	for _, step := range splitPath(path) {
		if step.isElement {
			b.WriteString(step.withoutValues())
		} else {
			b.WriteString("." + step.field)
		}
	}

	return b.String()
}

// endOf returns the index of a character outside of quoted text, or -1.
func endOf(text string, character byte) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case !quoted && text[i] == character:
			return i
		}
	}

	return -1
}

// remove removes the field at a path from an object.
func remove(obj map[string]any, path string) bool {
	steps := splitPath(path)
	if len(steps) == 0 {
		return false
	}

	var at any = obj
	last := steps[len(steps)-1]
	for _, step := range steps[:len(steps)-1] {
		at = step.follow(at)
	}
	fields, isMap := at.(map[string]any)
	if _, found := fields[last.field]; !isMap || last.isElement || !found {
		return false
	}

	delete(fields, last.field)
	return true
}

// follow returns the value that a step leads to, or nil.
func (s step) follow(from any) any {
	if !s.isElement {
		fields, _ := from.(map[string]any)
		return fields[s.field]
	}

	list, _ := from.([]any)
	if place, err := strconv.Atoi(s.element); err == nil {
		if place < len(list) {
			return list[place]
		}
		return nil
	}

	for _, element := range list {
		if fields, isMap := element.(map[string]any); isMap && hasKeys(fields, s.element) {
			return element
		}
	}

	return nil
}

// hasKeys reports whether an element has keys such as name="x",port=80. Keys that it lacks were
// defaulted.
func hasKeys(fields map[string]any, keys string) bool {
	for len(keys) > 0 {
		end := endOf(keys, ',')
		key := keys
		if keys = ""; end >= 0 {
			key, keys = key[:end], key[end+1:]
		}
		name, want, _ := strings.Cut(key, "=")
		if got, found := fields[name]; found && value.ToString(value.NewValueInterface(got)) != want {
			return false
		}
	}

	return true
}
