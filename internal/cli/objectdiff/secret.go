package objectdiff

import (
	"maps"
	"strings"
)

func isSecret(obj map[string]any) bool {
	return obj != nil && obj["kind"] == "Secret" && obj["apiVersion"] == "v1"
}

// lastApplied is an annotation with a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func hide(changes []Change) []Change {
	for i := range changes {
		c := &changes[i]
		before, after := c.Before, c.After
		switch {
		case c.Path == "":
			c.Before, c.After = Mask(before), Mask(after)
		case isValue(c.Path):
			c.Before, c.After = hidden(before), hidden(after)
		}
	}
	return changes
}

// isValue reports whether a path is of a value of a Secret, or of a copy.
func isValue(path string) bool {
	for _, field := range []string{"data", "stringData"} {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			return true
		}
	}
	return path == "metadata.annotations" || path == Child("metadata.annotations", lastApplied)
}

// hidden keeps the keys of a map and hides the rest.
func hidden(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = Hidden
		}
		return out
	}
	return Hidden
}

// Mask returns a copy of an object without the values of a Secret.
func Mask(v any) any {
	obj, ok := v.(map[string]any)
	if !ok || !isSecret(obj) {
		return v
	}
	out := maps.Clone(obj)
	for _, field := range []string{"data", "stringData"} {
		if value, ok := out[field]; ok {
			out[field] = hidden(value)
		}
	}
	meta, _ := out["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if _, ok := annotations[lastApplied]; ok {
		meta, annotations = maps.Clone(meta), maps.Clone(annotations)
		annotations[lastApplied] = Hidden
		meta["annotations"], out["metadata"] = annotations, meta
	}
	return out
}
