package probes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// Functions of the guard, which authors cannot call: they are not in jqFunctions.
const (
	guardCharge  = "_charge"
	guardShort   = "_short"
	guardNumbers = "_numbers"
)

// jqFunctions are the functions of probes by name and number of arguments, and whether they
// build a result to account for. All take time linear in their input (sort, unique: n log
// n). Others reach outside the object (env, input, now), loop (limit, range, reduce), or
// have no such bound (test, join).
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

var jqRemedy = "use paths, operators, if, try and these functions: " + strings.Join(jqFunctionNames(), ", ")

func jqFunctionNames() []string {
	var names []string
	for name := range jqFunctions {
		name, _, _ = strings.Cut(name, "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func refuseJQ(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...) + " is not available in a probe", jqRemedy}
}

// guardQuery returns the query with accounting for all that it builds, or rejects it.
func guardQuery(q *gojq.Query) (*gojq.Query, error) {
	switch {
	case q == nil:
		return nil, nil
	case q.Meta != nil || len(q.Imports) > 0:
		return nil, refuseJQ("a module (module, import, include)")
	case len(q.FuncDefs) > 0:
		return nil, refuseJQ("a function definition (def)")
	case len(q.Patterns) > 0:
		return nil, refuseJQ("a variable (as)")
	case q.Term != nil:
		term, err := guardTerm(q.Term)
		if err != nil {
			return nil, err
		}
		return &gojq.Query{Term: term}, nil
	case q.Left == nil || q.Right == nil:
		return nil, &refusal{"jq expression without a filter", "write e.g. .status.replicas"}
	}
	left, err := guardQuery(q.Left)
	if err != nil {
		return nil, err
	}
	right, err := guardQuery(q.Right)
	if err != nil {
		return nil, err
	}
	return guardOperator(q.Op, left, right)
}

func guardOperator(op gojq.Operator, left, right *gojq.Query) (*gojq.Query, error) {
	switch op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr,
		gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return &gojq.Query{Left: left, Op: op, Right: right}, nil
	case gojq.OpAdd:
		return pipe(&gojq.Query{Left: left, Op: op, Right: right}, call(guardCharge)), nil
	case gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		operands := call(guardNumbers, left, right)
		result := &gojq.Query{Left: element("0"), Op: op, Right: element("1")}
		return pipe(operands, pipe(result, call(guardCharge))), nil
	default:
		return nil, refuseJQ("the assignment %s", op)
	}
}

// guardTerm guards the term, then each suffix on the accounted value before it.
func guardTerm(t *gojq.Term) (*gojq.Term, error) {
	guarded, charged, err := guardBareTerm(t)
	if err != nil {
		return nil, err
	}
	if charged {
		guarded = chargedTerm(guarded)
	}
	for _, suffix := range t.SuffixList {
		index, err := guardIndex(suffix.Index)
		if err != nil {
			return nil, err
		}
		next := *guarded
		next.SuffixList = append(slices.Clone(guarded.SuffixList),
			&gojq.Suffix{Index: index, Iter: suffix.Iter, Optional: suffix.Optional})
		guarded = &next
		if index != nil && index.IsSlice {
			guarded = chargedTerm(guarded)
		}
	}
	return guarded, nil
}

// guardBareTerm guards a term without suffixes; charged means that it builds a value.
func guardBareTerm(t *gojq.Term) (guarded *gojq.Term, charged bool, err error) {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull,
		gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return &gojq.Term{Type: t.Type, Number: t.Number}, false, nil
	case gojq.TermTypeIndex:
		index, err := guardIndex(t.Index)
		return &gojq.Term{Type: t.Type, Index: index}, t.Index.IsSlice, err
	case gojq.TermTypeString:
		return &gojq.Term{Type: t.Type, Str: t.Str}, false, guardString(t.Str)
	case gojq.TermTypeFunc:
		return guardFunction(t.Func)
	case gojq.TermTypeArray:
		query, err := guardQuery(t.Array.Query)
		return &gojq.Term{Type: t.Type, Array: &gojq.Array{Query: query}}, true, err
	case gojq.TermTypeObject:
		object, err := guardObject(t.Object)
		return &gojq.Term{Type: t.Type, Object: object}, true, err
	case gojq.TermTypeQuery:
		query, err := guardQuery(t.Query)
		return &gojq.Term{Type: t.Type, Query: query}, false, err
	default:
		return guardControl(t)
	}
}

func guardControl(t *gojq.Term) (guarded *gojq.Term, charged bool, err error) {
	switch t.Type {
	case gojq.TermTypeUnary:
		term, err := guardTerm(t.Unary.Term)
		return &gojq.Term{Type: t.Type, Unary: &gojq.Unary{Op: t.Unary.Op, Term: term}}, false, err
	case gojq.TermTypeIf:
		branch, err := guardIf(t.If)
		return &gojq.Term{Type: t.Type, If: branch}, false, err
	case gojq.TermTypeTry:
		body, err := guardQuery(t.Try.Body)
		if err != nil {
			return nil, false, err
		}
		catch, err := guardQuery(t.Try.Catch)
		return &gojq.Term{Type: t.Type, Try: &gojq.Try{Body: body, Catch: catch}}, false, err
	case gojq.TermTypeFormat:
		return nil, false, refuseJQ("the format %s", t.Format)
	case gojq.TermTypeReduce:
		return nil, false, refuseJQ("the loop reduce")
	case gojq.TermTypeForeach:
		return nil, false, refuseJQ("the loop foreach")
	default:
		return nil, false, refuseJQ("a label (label, break)")
	}
}

func guardIf(branch *gojq.If) (*gojq.If, error) {
	queries := []*gojq.Query{branch.Cond, branch.Then, branch.Else}
	for _, elif := range branch.Elif {
		queries = append(queries, elif.Cond, elif.Then)
	}
	if err := guardAll(queries); err != nil {
		return nil, err
	}
	guarded := &gojq.If{Cond: queries[0], Then: queries[1], Else: queries[2]}
	for i := 3; i < len(queries); i += 2 {
		guarded.Elif = append(guarded.Elif, &gojq.IfElif{Cond: queries[i], Then: queries[i+1]})
	}
	return guarded, nil
}

// guardAll replaces queries by their guarded forms.
func guardAll(queries []*gojq.Query) error {
	for i, query := range queries {
		guarded, err := guardQuery(query)
		if err != nil {
			return err
		}
		queries[i] = guarded
	}
	return nil
}

func guardFunction(f *gojq.Func) (guarded *gojq.Term, charged bool, err error) {
	charged, known := jqFunctions[functionName(f)]
	if !known && strings.HasPrefix(f.Name, "$") {
		return nil, false, refuseJQ("the variable %s", f.Name)
	}
	if !known {
		return nil, false, refuseJQ("the function %s with %d arguments", f.Name, len(f.Args))
	}
	args := slices.Clone(f.Args)
	if err := guardAll(args); err != nil {
		return nil, false, err
	}
	function := &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: f.Name, Args: args}}
	if f.Name == "tonumber" {
		return termOf(pipe(call(guardShort), &gojq.Query{Term: function})), false, nil
	}
	return function, charged, nil
}

// functionName is jq's name of a function, such as any/2.
func functionName(f *gojq.Func) string { return fmt.Sprintf("%s/%d", f.Name, len(f.Args)) }

func guardObject(object *gojq.Object) (*gojq.Object, error) {
	guarded := &gojq.Object{}
	for _, pair := range object.KeyVals {
		if strings.HasPrefix(pair.Key, "$") {
			return nil, refuseJQ("the variable %s", pair.Key)
		}
		if err := guardString(pair.KeyString); err != nil {
			return nil, err
		}
		queries := []*gojq.Query{pair.KeyQuery, pair.Val}
		if err := guardAll(queries); err != nil {
			return nil, err
		}
		guarded.KeyVals = append(guarded.KeyVals, &gojq.ObjectKeyVal{
			Key: pair.Key, KeyString: pair.KeyString, KeyQuery: queries[0], Val: queries[1],
		})
	}
	return guarded, nil
}

func guardIndex(index *gojq.Index) (*gojq.Index, error) {
	if index == nil {
		return nil, nil
	}
	if err := guardString(index.Str); err != nil {
		return nil, err
	}
	queries := []*gojq.Query{index.Start, index.End}
	if err := guardAll(queries); err != nil {
		return nil, err
	}
	return &gojq.Index{
		Name: index.Name, Str: index.Str, Start: queries[0], End: queries[1], IsSlice: index.IsSlice,
	}, nil
}

func guardString(text *gojq.String) error {
	if text != nil && len(text.Queries) > 0 {
		return refuseJQ(`string interpolation \(…)`)
	}
	return nil
}

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func pipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func termOf(query *gojq.Query) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeQuery, Query: query}
}

func chargedTerm(term *gojq.Term) *gojq.Term {
	return termOf(pipe(&gojq.Query{Term: term}, call(guardCharge)))
}

// element is .[n].
func element(n string) *gojq.Query {
	number := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: n}}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Start: number}}}
}
