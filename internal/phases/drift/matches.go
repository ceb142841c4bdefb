package drift

import (
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Matches reports whether every value of the template stands on the live object as
// it is written: an apply would change nothing on the template's paths. False
// means "not known": what the API server normalises, such as quantities, or
// leaves out, such as zero values, looks different. Lists that are not known to
// be associative or sets have to have the same length.
//
// Neither argument is changed. shapes may be nil.
func Matches(template, live map[string]any, shapes *KindShapes) bool {
	m := matcher{shapes}
	for key, value := range template {
		switch key {
		case "status":
		case "metadata":
			metadata, _ := value.(map[string]any)
			liveMetadata, _ := live[key].(map[string]any)
			if !m.metadata(metadata, liveMetadata) {
				return false
			}
		default:
			if !m.value(field(rootPath, key), value, live[key]) {
				return false
			}
		}
	}
	return true
}

type matcher struct{ shapes *KindShapes }

func (m matcher) metadata(template, live map[string]any) bool {
	for key, value := range template {
		switch {
		case key == "ownerReferences":
			if !controlledAlike(value, live[key]) {
				return false
			}
		case ignoredMetadata(key):
		case key == "finalizers":
			if !containsAll(value, live[key]) {
				return false
			}
		case !m.metadataField(key, value, live[key]):
			return false
		}
	}
	return true
}

func (m matcher) metadataField(key string, template, live any) bool {
	values, isMap := template.(map[string]any)
	if !isMap {
		return template == nil || same(template, live)
	}
	liveValues, _ := live.(map[string]any)
	for name, value := range values {
		if key == "annotations" && name == corev1alpha1.RevisionAnnotation {
			continue
		}
		if value != nil && !same(value, liveValues[name]) {
			return false
		}
	}
	return true
}

// controlledAlike reports whether the live object has the template's controller.
func controlledAlike(template, live any) bool {
	want := controllerOf(template)
	if want == nil {
		return true
	}
	got := ownerWith(live, want["uid"])
	group := func(reference map[string]any) string {
		group, _, _ := strings.Cut(text(reference["apiVersion"]), "/")
		return group
	}
	return got != nil && got["controller"] == true && got["kind"] == want["kind"] &&
		got["name"] == want["name"] && group(got) == group(want)
}

func containsAll(template, live any) bool {
	values, _ := template.([]any)
	liveValues, _ := live.([]any)
	for _, value := range values {
		if !slices.ContainsFunc(liveValues, func(other any) bool { return same(value, other) }) {
			return false
		}
	}
	return true
}

func (m matcher) value(path pathID, template, live any) bool {
	switch template := template.(type) {
	case nil:
		return true
	case map[string]any:
		return m.mapping(path, template, live)
	case []any:
		return m.list(path, template, live)
	default:
		return same(template, live)
	}
}

func (m matcher) mapping(path pathID, template map[string]any, live any) bool {
	fields, isMap := live.(map[string]any)
	if live != nil && !isMap {
		return false
	}
	if m.shapes.whole(path) {
		return exactly(template, fields)
	}
	for key, value := range template {
		if !m.value(field(path, key), value, fields[key]) {
			return false
		}
	}
	return true
}

// exactly compares what is owned as a whole. A reference to a field of the
// object itself is defaulted by the API server, to the version v1.
func exactly(template, live any) bool {
	if isEmpty(template) || isEmpty(live) {
		return isEmpty(template) && isEmpty(live)
	}
	switch template := template.(type) {
	case map[string]any:
		fields, isMap := live.(map[string]any)
		for key, value := range fields {
			if !exactly(template[key], value) && !(key == "apiVersion" && value == "v1" && template["fieldPath"] != nil) {
				return false
			}
		}
		for key, value := range template {
			if fields[key] == nil && !isEmpty(value) {
				return false
			}
		}
		return isMap
	case []any:
		values, isList := live.([]any)
		return isList && slices.EqualFunc(template, values, exactly)
	default:
		return same(template, live)
	}
}

func (m matcher) list(path pathID, template []any, live any) bool {
	values, isList := live.([]any)
	if live != nil && !isList {
		return false
	}
	shape, known := m.shapes.list(path)
	path = field(path, elements)
	switch {
	case known && shape.keys == nil:
		return containsAll(template, live)
	case known && allKeyed(template, shape.keys):
		return m.associative(path, template, values, shape.keys)
	}
	if len(template) != len(values) {
		return false
	}
	for i := range template {
		if !m.value(path, template[i], values[i]) {
			return false
		}
	}
	return true
}

// associative asks for every element of the template, in its order.
func (m matcher) associative(path pathID, template, live []any, keys []string) bool {
	finder, last := finder{live: live, keys: keys}, -1
	for _, element := range template {
		found := finder.find(element.(map[string]any))
		if len(found) == 0 || found[0] <= last {
			return false
		}
		last = found[0]
		for _, i := range found {
			if !m.value(path, element, live[i]) {
				return false
			}
		}
	}
	return true
}
