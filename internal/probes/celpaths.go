package probes

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// celPaths returns a superset of the fields that a checked rule reads; an empty path is the
// whole object.
func celPaths(rule ast.Expr) [][]string {
	var paths [][]string
	var walk func(ast.Expr)
	walk = func(e ast.Expr) {
		if path, isPath := staticPath(e); isPath {
			paths = append(paths, path)
			return
		}
		for _, operand := range operands(e) {
			walk(operand)
		}
	}
	walk(rule)
	return paths
}

// staticPath returns a and b of self.a.b, self["a"].b or has(self.a.b).
func staticPath(e ast.Expr) (path []string, isPath bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return nil, e.AsIdent() == self
	case ast.SelectKind:
		path, isPath = staticPath(e.AsSelect().Operand())
		return append(path, e.AsSelect().FieldName()), isPath
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, false
		}
		key, isString := call.Args()[1].AsLiteral().(types.String)
		path, isPath = staticPath(call.Args()[0])
		return append(path, string(key)), isPath && isString
	default:
		return nil, false
	}
}

// operands are the expressions that e is made of.
func operands(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var parts []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return parts
	case ast.StructKind:
		var parts []ast.Expr
		for _, field := range e.AsStruct().Fields() {
			parts = append(parts, field.AsStructField().Value())
		}
		return parts
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		return []ast.Expr{loop.IterRange(), loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result()}
	default:
		return nil
	}
}
