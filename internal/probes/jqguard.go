package probes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// These functions belong to the guard. Authors cannot call them because jqFunctions lacks them.
const (
	// _charge accounts for its input and returns it, or fails beyond the limit.
	guardCharge = "_charge"
	// _short refuses a long string before tonumber parses it.
	guardShort = "_short"
	// _numbers returns both arguments as a list if they are numbers.
	guardNumbers = "_numbers"
)

// jqFunctions maps the functions available to probes, by name and arity, to whether they build a
// result to account for. All run in linear time (sort and unique in n log n). The missing ones
// reach outside the object, loop, or have no such bound.
var jqFunctions = map[string]bool{
	"not/0": false, "length/0": false, "type/0": false, "has/1": false,
	"empty/0": false, "select/1": false, "first/0": false, "last/0": false,
	"first/1": false, "last/1": false,
	"any/0": false, "any/1": false, "any/2": false,
	"all/0": false, "all/1": false, "all/2": false,
	"min/0": false, "max/0": false,
	"startswith/1": false, "endswith/1": false,
	"values/0": false, "nulls/0": false, "booleans/0": false, "numbers/0": false, "strings/0": false,
	"arrays/0": false, "objects/0": false, "iterables/0": false, "scalars/0": false,
	"floor/0": false, "ceil/0": false, "round/0": false, "abs/0": false, "tonumber/0": false,
	"recurse/0": false,

	"add/0": true, "map/1": true, "keys/0": true, "to_entries/0": true, "reverse/0": true, "flatten/0": true,
	"sort/0": true, "unique/0": true, "tostring/0": true, "tojson/0": true, "split/1": true,
	"ascii_downcase/0": true, "ascii_upcase/0": true, "ltrimstr/1": true, "rtrimstr/1": true, "trim/0": true,
}

// jqRemedy lists the available functions, so that an author can rewrite a refused expression
// without another document.
var jqRemedy = "use paths, operators, if, try and these functions: " + strings.Join(jqFunctionNames(), ", ")

// jqFunctionNames returns the sorted names without arities.
func jqFunctionNames() []string {
	var names []string
	for name := range jqFunctions {
		name, _, _ = strings.Cut(name, "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refuseJQ returns a refusal of a part of jq that is not bounded here, with jqRemedy.
func refuseJQ(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...) + " is not available here", jqRemedy}
}

// guardQuery makes a query account for everything it builds, or rejects it.
func guardQuery(q *gojq.Query) error {
	switch {
	case q == nil:
		return nil
	case q.Meta != nil || len(q.Imports) > 0:
		return refuseJQ("a module (module, import, include)")
	case len(q.FuncDefs) > 0:
		return refuseJQ("a function definition (def)")
	case len(q.Patterns) > 0:
		return refuseJQ("a variable (as)")
	case q.Term != nil:
		return guardTerm(q.Term)
	case q.Left == nil || q.Right == nil:
		return &refusal{"jq expression without a filter", "write e.g. .status.replicas"}
	}

	if err := guardQueries(q.Left, q.Right); err != nil {
		return err
	}

	switch q.Op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr,
		gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
	// Addition joins strings, lists and objects, so its result can be as large as both operands
	// together.
	case gojq.OpAdd:
		*q = *pipe(&gojq.Query{Left: q.Left, Op: q.Op, Right: q.Right}, call(guardCharge))
	// Only numbers are permitted, because jq also repeats texts by * and splits them by /.
	case gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		result := &gojq.Query{Left: element("0"), Op: q.Op, Right: element("1")}
		*q = *pipe(call(guardNumbers, q.Left, q.Right), pipe(result, call(guardCharge)))
	default:
		return refuseJQ("the assignment %s", q.Op)
	}

	return nil
}

func guardQueries(queries ...*gojq.Query) error {
	for _, q := range queries {
		if err := guardQuery(q); err != nil {
			return err
		}
	}
	return nil
}

// guardTerm guards the term, then applies each suffix to the accounted value before it.
func guardTerm(t *gojq.Term) error {
	suffixes := t.SuffixList
	t.SuffixList = nil
	charged, err := guardBareTerm(t)
	if err != nil {
		return err
	}
	if charged {
		*t = chargedTerm(*t)
	}

	for _, suffix := range suffixes {
		if err := guardIndex(suffix.Index); err != nil {
			return err
		}
		t.SuffixList = append(t.SuffixList, suffix)
		if suffix.Index != nil && suffix.Index.IsSlice {
			*t = chargedTerm(*t)
		}
	}

	return nil
}

// guardBareTerm guards a term without suffixes; charged means that the term builds a value.
func guardBareTerm(t *gojq.Term) (charged bool, err error) {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull,
		gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return false, nil
	case gojq.TermTypeIndex:
		return t.Index.IsSlice, guardIndex(t.Index)
	case gojq.TermTypeString:
		return false, guardString(t.Str)
	case gojq.TermTypeFunc:
		return guardFunction(t)
	case gojq.TermTypeArray:
		return true, guardQuery(t.Array.Query)
	case gojq.TermTypeObject:
		return true, guardObject(t.Object)
	case gojq.TermTypeQuery:
		return false, guardQuery(t.Query)
	case gojq.TermTypeUnary:
		return false, guardTerm(t.Unary.Term)
	case gojq.TermTypeIf:
		for _, elif := range t.If.Elif {
			if err := guardQueries(elif.Cond, elif.Then); err != nil {
				return false, err
			}
		}
		return false, guardQueries(t.If.Cond, t.If.Then, t.If.Else)
	case gojq.TermTypeTry:
		return false, guardQueries(t.Try.Body, t.Try.Catch)
	case gojq.TermTypeFormat:
		return false, refuseJQ("the format %s", t.Format)
	case gojq.TermTypeReduce:
		return false, refuseJQ("the loop reduce")
	case gojq.TermTypeForeach:
		return false, refuseJQ("the loop foreach")
	default:
		return false, refuseJQ("a label (label, break)")
	}
}

// guardFunction guards a call with all of its arguments, and refuses functions that jqFunctions
// lacks.
func guardFunction(t *gojq.Term) (charged bool, err error) {
	f := t.Func
	charged, known := jqFunctions[fmt.Sprintf("%s/%d", f.Name, len(f.Args))] // as in jq's own messages
	if !known && strings.HasPrefix(f.Name, "$") {
		return false, refuseJQ("the variable %s", f.Name)
	}
	if !known {
		return false, refuseJQ("the function %s with %d arguments", f.Name, len(f.Args))
	}
	if err := guardQueries(f.Args...); err != nil {
		return false, err
	}
	if f.Name == "tonumber" {
		*t = termOf(pipe(call(guardShort), call(f.Name)))
	}

	return charged, nil
}

// guardObject guards the keys and values of a constructed object.
func guardObject(object *gojq.Object) error {
	for _, pair := range object.KeyVals {
		if strings.HasPrefix(pair.Key, "$") {
			return refuseJQ("the variable %s", pair.Key)
		}
		if err := guardString(pair.KeyString); err != nil {
			return err
		}
		if err := guardQueries(pair.KeyQuery, pair.Val); err != nil {
			return err
		}
	}
	return nil
}

// guardIndex guards the expressions in .[i] and .[i:j].
func guardIndex(index *gojq.Index) error {
	if index == nil {
		return nil
	}
	if err := guardString(index.Str); err != nil {
		return err
	}
	return guardQueries(index.Start, index.End)
}

// guardString refuses interpolation, which builds strings without a function that could charge for
// them.
func guardString(text *gojq.String) error {
	if text != nil && len(text.Queries) > 0 {
		return refuseJQ(`string interpolation \(…)`)
	}
	return nil
}

// call, pipe, termOf, chargedTerm and element build queries. gojq has no constructors, and a query
// made of text would have to be quoted.
func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func pipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func termOf(query *gojq.Query) gojq.Term {
	return gojq.Term{Type: gojq.TermTypeQuery, Query: query}
}

func chargedTerm(term gojq.Term) gojq.Term {
	return termOf(pipe(&gojq.Query{Term: &term}, call(guardCharge)))
}

func element(n string) *gojq.Query {
	number := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: n}}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Start: number}}}
}
