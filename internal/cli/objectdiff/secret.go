package objectdiff

import "strings"

func isSecret(obj map[string]any) bool {
	return obj != nil && obj["kind"] == "Secret" && obj["apiVersion"] == "v1"
}

// copies are annotations in which tools keep a copy of a whole object.
var copies = []string{"kubectl.kubernetes.io/last-applied-configuration"}

// hide takes the values of a Secret out of changes.
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

// isValue tells whether a path leads to a value of a Secret, or to a copy.
func isValue(path string) bool {
	for _, field := range []string{"data", "stringData"} {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			return true
		}
	}
	for _, key := range copies {
		if path == Child("metadata.annotations", key) {
			return true
		}
	}
	return path == "metadata.annotations"
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

// Mask returns an object without the values of a Secret; any other object as it
// is. The object that is passed in stays as it is.
func Mask(v any) any {
	obj, ok := v.(map[string]any)
	if !ok || !isSecret(obj) {
		return v
	}
	out := make(map[string]any, len(obj))
	for key, value := range obj {
		out[key] = value
	}
	for _, field := range []string{"data", "stringData"} {
		if value, ok := out[field]; ok {
			out[field] = hidden(value)
		}
	}
	meta, _ := out["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for _, key := range copies {
		if _, ok := annotations[key]; ok {
			clean := make(map[string]any, len(annotations))
			for k, value := range annotations {
				clean[k] = value
			}
			clean[key] = Hidden
			annotations = clean
			cleanMeta := make(map[string]any, len(meta))
			for k, value := range meta {
				cleanMeta[k] = value
			}
			cleanMeta["annotations"] = annotations
			out["metadata"] = cleanMeta
		}
	}
	return out
}
