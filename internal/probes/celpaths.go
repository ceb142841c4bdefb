package probes

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// celPaths returns a superset of the fields that a checked rule reads; an empty path is the whole
// object.
func celPaths(rule ast.Expr) [][]string {
	if path, isPath := staticPath(rule); isPath {
		return [][]string{path}
	}
	var paths [][]string
	// A path that is computed is not static. Its operands are, down to the variable self, which
	// reads the whole object.
	for _, operand := range ast.NavigateExpr(nil, rule).Children() {
		paths = append(paths, celPaths(operand)...)
	}
	return paths
}

// staticPath returns a and b of self.a.b, self["a"].b or has(self.a.b). isPath is false if the
// expression is computed, or starts at another variable such as a comprehension's.
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
