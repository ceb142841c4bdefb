package probes

import (
	"slices"

	"github.com/itchyny/gojq"
)

// jqPaths returns a superset of the fields that a guarded query reads; an empty path is the whole object.
func jqPaths(query *gojq.Query) [][]string {
	var r jqReads
	r.record(r.query(query, jqValue{exact: true}))
	return r.paths
}

// jqValue says where in the object a value of the query lies.
type jqValue struct {
	// path contains the value, exactly (exact) or somewhere inside.
	path  []string
	exact bool
	// accounted values are constant, computed, or recorded already.
	accounted bool
}

// jqReads collects what is read while it follows values through a query.
type jqReads struct{ paths [][]string }

var computed = jqValue{accounted: true}

func (r *jqReads) record(v jqValue) {
	if !v.accounted {
		r.paths = append(r.paths, v.path)
	}
}

// query returns where the results lie when the query is run on in.
func (r *jqReads) query(q *gojq.Query, in jqValue) jqValue {
	switch {
	case q == nil:
		return computed
	case q.Term != nil:
		return r.term(q.Term, in)
	case q.Op == gojq.OpPipe:
		return r.pipe(q, in)
	default:
		r.record(r.query(q.Left, in))
		r.record(r.query(q.Right, in))
		return computed
	}
}

// pipe reads the left side also where the right side ignores it: reading may fail.
func (r *jqReads) pipe(q *gojq.Query, in jqValue) jqValue {
	left := r.query(q.Left, in)
	right := r.query(q.Right, left)
	if right.accounted && len(left.path) > 0 {
		r.record(left)
	}
	return right
}

func (r *jqReads) term(t *gojq.Term, in jqValue) jqValue {
	value := r.bareTerm(t, in)
	for _, suffix := range t.SuffixList {
		switch {
		case suffix.Index != nil:
			value = r.index(suffix.Index, value, in)
		case suffix.Iter:
			// How many elements there are counts, also where none is read.
			r.record(value)
			value = computed
		}
	}
	return value
}

func (r *jqReads) bareTerm(t *gojq.Term, in jqValue) jqValue {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeRecurse:
		r.record(in)
	case gojq.TermTypeIndex:
		return r.index(t.Index, in, in)
	case gojq.TermTypeQuery:
		return r.query(t.Query, in)
	case gojq.TermTypeFunc:
		r.function(t.Func, in)
	case gojq.TermTypeArray:
		r.record(r.query(t.Array.Query, in))
	case gojq.TermTypeObject:
		r.object(t.Object, in)
	case gojq.TermTypeUnary:
		r.record(r.term(t.Unary.Term, in))
	case gojq.TermTypeIf:
		r.branches(t.If, in)
	case gojq.TermTypeTry:
		r.record(r.query(t.Try.Body, in))
		r.record(r.query(t.Try.Catch, computed))
	}
	return computed
}

// index follows value[index]; the index itself is evaluated on in.
func (r *jqReads) index(index *gojq.Index, value, in jqValue) jqValue {
	r.record(r.query(index.Start, in))
	r.record(r.query(index.End, in))
	name, isField := fieldName(index)
	if !isField || !value.exact || value.accounted {
		value.exact = false
		return value
	}
	return jqValue{path: append(slices.Clone(value.path), name), exact: true}
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

// generators run their first argument on their input, which they do not read themselves.
var generators = map[string]bool{"first/1": true, "last/1": true, "any/2": true, "all/2": true}

func (r *jqReads) function(f *gojq.Func, in jqValue) {
	if len(f.Args) > 0 && generators[functionName(f)] {
		r.record(r.query(f.Args[0], in))
		for _, arg := range f.Args[1:] {
			r.record(r.query(arg, computed))
		}
		return
	}
	// The whole input is read, hence everything that arguments can reach in it.
	if f.Name != "empty" {
		r.record(in)
	}
}

func (r *jqReads) object(object *gojq.Object, in jqValue) {
	for _, pair := range object.KeyVals {
		r.record(r.query(pair.KeyQuery, in))
		if pair.Val != nil {
			r.record(r.query(pair.Val, in))
			continue
		}
		// {a} is {a: .a}; {(e)} is read like {(e): .[e]}.
		switch {
		case pair.Key != "":
			r.record(r.index(&gojq.Index{Name: pair.Key}, in, in))
		case pair.KeyString != nil:
			r.record(r.index(&gojq.Index{Str: pair.KeyString}, in, in))
		default:
			r.record(in)
		}
	}
}

func (r *jqReads) branches(branch *gojq.If, in jqValue) {
	for _, query := range []*gojq.Query{branch.Cond, branch.Then, branch.Else} {
		r.record(r.query(query, in))
	}
	for _, elif := range branch.Elif {
		r.record(r.query(elif.Cond, in))
		r.record(r.query(elif.Then, in))
	}
	// Without else the input itself is the result.
	if branch.Else == nil {
		r.record(in)
	}
}
