package drift

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Yield leaves out other managers' fields that conflict with the template. causes are the fields
// that the API server named when it refused the last object, such as spec.ports[1].name. Candidates
// are the fields at or below a cause, then the fields in the innermost list element, list or map
// around it that has any. It tries one manager at a time, starting with the latest writer. If the
// API server names the same causes again, the fields are put back. It returns false if no candidate
// is left.
func (m *Implied) Yield(causes []string) bool {
	if at := m.resolve(causes); len(m.tried.causes) > 0 && slices.Equal(at, m.tried.causes) {
		m.others, m.ours, m.yielded = slices.Clone(m.tried.others), m.tried.ours, m.tried.yielded
		m.tried.candidates++
	} else {
		m.tried = attempt{causes: at, others: slices.Clone(m.others), ours: m.ours, yielded: m.yielded}
	}
	if m.first == nil {
		m.first = &attempt{others: slices.Clone(m.others), ours: m.ours, yielded: m.yielded}
	}

	i := 0
	for fields := range m.candidates(causes) {
		if i == m.tried.candidates {
			m.drop(fields)
			return true
		}
		i++
	}

	return false
}

// attempt is the state before fields yielded, and how many candidates were tried from it.
type attempt struct {
	causes     []string
	candidates int
	others     []share
	ours       *fieldpath.Set
	yielded    []string
}

// resolve returns the fields that causes refer to in the present object. An index refers to another
// element if elements before it were left out.
func (m *Implied) resolve(causes []string) []string {
	object := m.Object()
	at := make([]string, 0, len(causes))
	for _, cause := range causes {
		found := cause
		if levels := m.levels(object, cause); len(levels) > 0 {
			found = levels[len(levels)-1].String()
		}
		at = append(at, found)
	}

	return at
}

// candidates yields the possibly conflicting fields in the order of the attempts.
func (m *Implied) candidates(causes []string) iter.Seq[[]yielding] {
	return func(yield func([]yielding) bool) {
		object := m.Object()
		for _, cause := range causes {
			levels, narrower := m.levels(object, cause), 0
			for i := len(levels) - 1; i >= 0; i-- {
				level := levels[i]
				found := m.movable(object, level)
				if len(found) == narrower {
					continue // there is nothing else around it
				}
				narrower = len(found)
				each := m.byManager(found)
				if around := i < len(levels)-1 && level[len(level)-1].FieldName != nil; around {
					if near := adjacent(found, level); len(near) < len(found) {
						each = append(m.byManager(near), each...)
					}
				}
				for _, fields := range each {
					if !yield(fields) {
						return
					}
				}
			}
			if twins := m.twins(object, cause); len(twins) > 0 && !yield(twins) {
				return
			}
		}
	}
}

// byManager returns the fields of each manager, starting with the latest, and then all of them.
func (m *Implied) byManager(found []yielding) [][]yielding {
	groups := map[int][]yielding{}
	for _, f := range found {
		groups[f.share] = append(groups[f.share], f)
	}

	shares := slices.SortedFunc(maps.Keys(groups), func(a, b int) int {
		return cmp.Or(m.others[b].written.Compare(m.others[a].written), cmp.Compare(a, b))
	})
	var each [][]yielding
	for _, share := range shares {
		each = append(each, groups[share])
	}

	if len(each) > 1 {
		each = append(each, found)
	}

	return each
}

// twins returns other managers' fields elsewhere with the name of the cause, such as the key of a
// ConfigMap that is both in data and in binaryData.
func (m *Implied) twins(object map[string]any, cause string) []yielding {
	parts := causeParts(cause)
	return slices.DeleteFunc(m.movable(object, nil), func(f yielding) bool {
		return len(parts) < 2 || len(f.path) != len(parts) || !isField(f.path[len(f.path)-1], parts[len(parts)-1])
	})
}

// Keep leaves fields of installers to them that the template lacks, at or below immutable fields.
// It returns false if it finds no such field.
func (m *Implied) Keep(fields []string) bool {
	kept := false
	for _, s := range m.installers {
		left := leftToInstaller(s.fields, m.template, fields).Intersection(m.ours)
		if left.Empty() {
			continue
		}
		kept = true
		installers := share{manager: s.manager, fixed: true, fields: left}
		m.ours, m.others = m.ours.Difference(left), append(m.others, installers)
		if m.first != nil {
			m.first.ours, m.first.others = m.first.ours.Difference(left), append(m.first.others, installers)
		}
		m.tried = attempt{}
	}

	return kept
}

// adjacent returns the fields right below a path, or all fields if there are none. Fields that
// exclude each other are mostly adjacent, and deeper ones often have nothing to do with the
// refusal.
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

// movable returns other managers' fields at or below a path that the object has and the template
// does not state.
func (m *Implied) movable(object map[string]any, level fieldpath.Path) []yielding {
	var found []yielding
	for i, s := range m.others {
		if s.fixed {
			continue
		}
		for path := range s.fields.All() {
			if isField(path[0], "metadata") || len(path) < len(level) || !path[:len(level)].Equals(level) || hasPath(m.template, path, true) {
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
	dropped := map[int]*fieldpath.Set{}
	for _, f := range fields {
		if dropped[f.share] == nil {
			dropped[f.share] = fieldpath.NewSet()
		}
		dropped[f.share].Insert(f.path)
	}

	m.yielded = slices.Clone(m.yielded)
	for i, set := range dropped {
		m.others[i].fields = m.others[i].fields.Difference(set)
		m.ours = m.ours.Union(set) // otherwise the fields would have no manager
		m.yielded = append(m.yielded, m.others[i].manager)
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
