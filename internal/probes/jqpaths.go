package probes

import "github.com/itchyny/gojq"

// jqPaths returns a superset of the fields that a guarded query reads; an empty path is the whole
// object. The right side of a pipe reads only from the results of the left side, which are therefore
// kept as a whole.
func jqPaths(q *gojq.Query) [][]string {
	switch {
	case q == nil:
		return nil
	case q.Term != nil:
		return termPaths(q.Term)
	case q.Op == gojq.OpPipe:
		return jqPaths(q.Left)
	}
	return append(jqPaths(q.Left), jqPaths(q.Right)...)
}

// termPaths returns the paths of a term. A path ends at the first suffix that is not the name of a
// field. Calls, conditions and constructors can read the whole object.
func termPaths(t *gojq.Term) [][]string {
	var paths [][]string
	indexes := []*gojq.Index{t.Index}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeIndex:
	case gojq.TermTypeQuery:
		paths = jqPaths(t.Query)
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeString:
	default:
		return [][]string{{}}
	}

	for _, suffix := range t.SuffixList {
		indexes = append(indexes, suffix.Index)
	}
	if t.Type == gojq.TermTypeIdentity {
		indexes = indexes[1:]
	}

	path, isStatic := []string{}, true
	for _, index := range indexes {
		name, isField := fieldName(index)
		if isStatic = isStatic && isField; isStatic {
			path = append(path, name)
		}
		if index != nil {
			paths = append(append(paths, jqPaths(index.Start)...), jqPaths(index.End)...)
		}
	}

	if t.Type == gojq.TermTypeIdentity || t.Type == gojq.TermTypeIndex {
		paths = append(paths, path)
	}

	return paths
}

// fieldName returns the name of a field that an index selects in every object.
func fieldName(index *gojq.Index) (name string, isField bool) {
	switch {
	case index == nil: // an iteration
		return "", false
	case index.Name != "":
		return index.Name, true
	case index.Str != nil:
		return index.Str.Str, true
	case index.IsSlice || index.Start == nil || index.Start.Term == nil:
		return "", false
	}
	key := index.Start.Term
	if key.Type != gojq.TermTypeString || len(key.SuffixList) > 0 {
		return "", false
	}
	return key.Str.Str, true
}
