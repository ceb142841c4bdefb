package drift

// Short reports whether the answer to an apply falls short of the template: a field, or an empty
// map or list, is missing, or others have filled an empty one. It does not compare values, because
// the API server normalises them and webhooks change them. An empty field of the object itself,
// such as its spec, can have any content.
func Short(template, answer map[string]any, types *ListTypes) bool {
	for key, v := range template {
		at := field(rootPath, key)
		_, has := answer[key]
		empty := isEmpty(v)
		switch {
		case key == "metadata" || key == "status" || key == "stringData":
		case empty && (has || types.whole(at)):
		case shortOf(at, v, answer[key], has, types):
			return true
		}
	}

	return false
}

func shortOf(path pathID, template, answer any, has bool, types *ListTypes) bool {
	switch t := template.(type) {
	case map[string]any:
		fields, isMap := answer.(map[string]any)
		if len(t) == 0 {
			return !isMap || len(fields) > 0
		}
		for key, v := range t {
			below, has := fields[key]
			if shortOf(field(path, key), v, below, has, types) {
				return true
			}
		}
		return !isMap
	case []any:
		elements, _ := answer.([]any)
		if len(t) == 0 {
			return !has || len(elements) > 0
		}
		return len(elements) == 0 || shortList(path, t, elements, types)
	}

	return !has && !isZero(template)
}

func shortList(path pathID, template, answer []any, types *ListTypes) bool {
	shape, known := types.list(path)
	path = field(path, elements)
	switch {
	case known && shape.keys != nil && allKeyed(template, shape.keys):
		finder := finder{live: answer, keys: shape.keys}
		for _, element := range template {
			found := finder.find(element.(map[string]any))
			if len(found) == 0 || shortOf(path, element, answer[found[0]], true, types) {
				return true
			}
		}
	case len(template) == len(answer) && !known:
		for i := range template {
			if shortOf(path, template[i], answer[i], true, types) {
				return true
			}
		}
	}

	return false
}

// isZero reports whether the API server can leave a scalar out.
func isZero(scalar any) bool {
	switch scalar := scalar.(type) {
	case nil:
		return true
	case bool:
		return !scalar
	case string:
		return scalar == ""
	case int64:
		return scalar == 0
	case float64:
		return scalar == 0
	}

	return false
}

// Reshaped reports whether one of two templates lacks a field or an element of the other. In that
// case fields that the API server derived from it can remain, such as policyTypes of a
// NetworkPolicy.
func Reshaped(former, next any) bool { return lacks(former, next) || lacks(next, former) }

func lacks(former, next any) bool {
	switch former := former.(type) {
	case map[string]any:
		fields, _ := next.(map[string]any)
		for key, v := range former {
			if v != nil && (fields[key] == nil || lacks(v, fields[key])) {
				return true
			}
		}
	case []any:
		list, _ := next.([]any)
		if len(list) < len(former) {
			return true
		}
		for i, element := range former {
			if lacks(element, list[i]) {
				return true
			}
		}
	}

	return false
}
