package probes

import (
	"slices"

	"github.com/itchyny/gojq"
)

// jqPaths returns a superset of the fields that a guarded query reads; an empty path is the whole
// object.
func jqPaths(query *gojq.Query) [][]string {
	var r jqReads
	r.record(r.query(query, location{}))
	return r.paths
}

// location is the path of a value in the object; nil if the value is computed or already recorded.
type location []string

// jqReads collects the paths while it follows the locations of values through a query.
type jqReads struct{ paths [][]string }

// record adds a location that the query reads; a computed value has none.
func (r *jqReads) record(at location) {
	if at != nil {
		r.paths = append(r.paths, at)
	}
}

// all records what queries on the same input read, including their results.
func (r *jqReads) all(in location, queries ...*gojq.Query) {
	for _, q := range queries {
		r.record(r.query(q, in))
	}
}

// query returns the place of the result if the query runs on in.
func (r *jqReads) query(q *gojq.Query, in location) location {
	switch {
	case q == nil:
		return nil
	case q.Term != nil:
		return r.term(q.Term, in)
	case q.Op != gojq.OpPipe:
		r.all(in, q.Left, q.Right)
		return nil
	}

	left := r.query(q.Left, in)
	right := r.query(q.Right, left)
	if right == nil && len(left) > 0 {
		r.record(left) // even if the right side ignores it, because reading can fail
	}

	return right
}

// term follows the suffixes of a term. An iteration reads the whole list, because paths end there.
func (r *jqReads) term(t *gojq.Term, in location) location {
	value := r.bareTerm(t, in)
	for _, suffix := range t.SuffixList {
		if suffix.Index != nil {
			value = r.index(suffix.Index, value, in)
		} else if suffix.Iter { // the number of elements matters even if no element is read
			r.record(value)
			value = nil
		}
	}
	return value
}

// bareTerm returns where a term without suffixes lies, or nil for a value that it builds. All parts
// of such a term are recorded before.
func (r *jqReads) bareTerm(t *gojq.Term, in location) location {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeIndex:
		return r.index(t.Index, in, in)
	case gojq.TermTypeQuery:
		return r.query(t.Query, in)
	case gojq.TermTypeRecurse:
		r.record(in)
	case gojq.TermTypeFunc:
		r.function(t.Func, in)
	case gojq.TermTypeArray:
		r.all(in, t.Array.Query)
	case gojq.TermTypeObject:
		for _, pair := range t.Object.KeyVals {
			r.all(in, pair.KeyQuery, pair.Val)
			if pair.Val == nil { // {a} is {a: .a}; {(e)} is read like {(e): .[e]}
				r.record(r.index(&gojq.Index{Name: pair.Key, Str: pair.KeyString}, in, in))
			}
		}
	case gojq.TermTypeUnary:
		r.record(r.term(t.Unary.Term, in))
	case gojq.TermTypeIf:
		r.all(in, t.If.Cond, t.If.Then, t.If.Else)
		for _, elif := range t.If.Elif {
			r.all(in, elif.Cond, elif.Then)
		}
		if t.If.Else == nil { // the input is the result
			r.record(in)
		}
	case gojq.TermTypeTry:
		r.all(in, t.Try.Body)
		r.all(nil, t.Try.Catch)
	}

	return nil
}

// index returns where value[index] lies. The index itself is evaluated on in.
func (r *jqReads) index(index *gojq.Index, value, in location) location {
	r.all(in, index.Start, index.End)
	if name, isField := fieldName(index); isField && value != nil {
		return append(slices.Clone(value), name)
	}
	r.record(value)
	return nil
}

// fieldName returns a of .a, ."a" and .["a"].
func fieldName(index *gojq.Index) (name string, isField bool) {
	switch {
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

// generators run their first argument on their input without reading the input themselves.
var generators = map[string]bool{"first/1": true, "last/1": true, "any/2": true, "all/2": true}

// function records the input of a call as read in full, except by functions known not to read it.
func (r *jqReads) function(f *gojq.Func, in location) {
	switch {
	case generators[functionName(f)]:
		r.all(in, f.Args[0])
		r.all(nil, f.Args[1:]...)
	case f.Name != "empty":
		r.record(in) // as a whole, including everything that the arguments can reach in it
	}
}
