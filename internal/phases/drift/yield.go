package drift

import (
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Yield leaves out fields of other managers that stand in the way of the template. cause is
// the field that the API server named when it refused the object, such as
// spec.ports[1].name, as the object was computed last. The fields at or below the cause
// yield, or else those in the innermost list element, list or map around it that has any. It
// returns false if there are none.
func (m *Implied) Yield(cause string) bool {
	object := m.Object()
	levels := m.levels(object, cause)
	for i := len(levels) - 1; i >= 0; i-- {
		level := levels[i]
		found := m.movable(object, level)
		if around := i < len(levels)-1 && level[len(level)-1].FieldName != nil; around {
			found = adjacent(found, level)
		}
		if len(found) > 0 {
			m.drop(found)
			return true
		}
	}
	return m.yieldTwins(object, cause)
}

// yieldTwins leaves out the fields of others with the name of the cause elsewhere, such as the key of a
// ConfigMap that is in data and in binaryData.
func (m *Implied) yieldTwins(object map[string]any, cause string) bool {
	parts := causeParts(cause)
	found := slices.DeleteFunc(m.movable(object, nil), func(f yielding) bool {
		return len(parts) < 2 || len(f.path) != len(parts) || !isField(f.path[len(f.path)-1], parts[len(parts)-1])
	})
	m.drop(found)
	return len(found) > 0
}

// Keep leaves the fields of installers to them that the template lacks, at or below fields that cannot
// change. It returns false if there are none.
func (m *Implied) Keep(fields []string) bool {
	kept := false
	for _, s := range m.installers {
		left := leftToInstaller(s.fields, m.template, fields).Intersection(m.ours)
		if left.Empty() {
			continue
		}
		kept = true
		m.ours = m.ours.Difference(left)
		m.others = append(m.others, share{s.manager, true, left})
	}
	return kept
}

// adjacent returns the fields right below a path, or all if there are none: fields that
// exclude each other are mostly next to each other, and those further below often have
// nothing to do with the refusal.
func adjacent(found []yielding, level fieldpath.Path) []yielding {
	next := slices.DeleteFunc(slices.Clone(found), func(f yielding) bool { return len(f.path) != len(level)+1 || !f.scalar })
	if len(next) > 0 {
		return next
	}
	return found
}

// yielding is a field of the share with an index that the template does not state.
type yielding struct {
	share  int
	path   fieldpath.Path
	scalar bool
}

// levels returns the paths from the root's fields down to the cause, as far as the object has them.
func (m *Implied) levels(object map[string]any, cause string) []fieldpath.Path {
	var levels []fieldpath.Path
	var at any = object
	id, path := rootPath, fieldpath.Path{}
	for _, part := range causeParts(cause) {
		switch node := at.(type) {
		case map[string]any:
			id, at = field(id, part), node[part]
			path = append(path.Copy(), named(part))
		case []any:
			index, err := strconv.Atoi(part)
			shape, known := m.shape(id)
			if err != nil || index < 0 || index >= len(node) || !known {
				return levels
			}
			id, at = field(id, elements), node[index]
			path = append(path.Copy(), elementOf(at, shape.keys))
		default:
			return levels
		}
		levels = append(levels, path)
	}
	return levels
}

// causeParts splits spec.ports[1].name and data[a.b] into their parts.
func causeParts(cause string) []string {
	var parts []string
	for cause != "" {
		end := strings.IndexAny(cause, ".[")
		switch {
		case end < 0:
			return append(parts, cause)
		case end > 0:
			parts = append(parts, cause[:end])
		}
		if cause[end] == '.' {
			cause = cause[end+1:]
			continue
		}
		inner, rest, _ := strings.Cut(cause[end+1:], "]")
		parts, cause = append(parts, inner), rest
	}
	return parts
}

// movable returns the fields of other managers at or below a path that the object has and the
// template does not state.
func (m *Implied) movable(object map[string]any, level fieldpath.Path) []yielding {
	var found []yielding
	for i, s := range m.others {
		if s.fixed {
			continue
		}
		for path := range s.fields.All() {
			if isField(path[0], "metadata") || len(path) < len(level) || !path[:len(level)].Equals(level) || states(m.template, path) {
				continue
			}
			v, has := lookup(object, path)
			if !has {
				continue
			}
			_, isMap := v.(map[string]any)
			_, isList := v.([]any)
			found = append(found, yielding{i, path.Copy(), !isMap && !isList})
		}
	}
	return found
}

func (m *Implied) drop(fields []yielding) {
	for _, f := range fields {
		s := &m.others[f.share]
		s.fields = s.fields.Difference(fieldpath.NewSet(f.path))
		m.ours.Insert(f.path) // else it would have no manager
		m.yielded = append(m.yielded, s.manager)
	}
}

// lookup returns the value at a path of managedFields.
func lookup(of any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch node := of.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			v, has := node[*element.FieldName]
			if !has {
				return nil, false
			}
			of = v
		case []any:
			i := slices.IndexFunc(node, func(candidate any) bool { return isElement(candidate, element) })
			if i < 0 {
				return nil, false
			}
			of = node[i]
		default:
			return nil, false
		}
	}
	return of, true
}
