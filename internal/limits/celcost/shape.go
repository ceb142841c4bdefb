package celcost

import (
	"fmt"

	"github.com/google/cel-go/common/ast"

	"lockstep.run/lockstep/internal/limits"
)

// Shape rejects an expression that takes long to check: the time grows with the third power of the
// depth of types.
func Shape(e ast.Expr) error {
	s := shape{}
	s.visit(ast.NavigateExpr(nil, e), 0)
	switch {
	case s.depth > limits.ExpressionNesting:
		return fmt.Errorf("lists and maps nest deeper than %d levels in the expression", limits.ExpressionNesting)
	case s.macros > limits.ExpressionMacros:
		return fmt.Errorf("the expression uses more than %d macros, such as map and exists", limits.ExpressionMacros)
	}
	return nil
}

type shape struct{ depth, macros int }

func (s *shape) visit(e ast.NavigableExpr, depth int) {
	switch e.Kind() {
	case ast.ListKind, ast.MapKind:
		depth++
		s.depth = max(s.depth, depth)
	case ast.ComprehensionKind:
		s.macros++
	}
	for _, x := range e.Children() {
		s.visit(x, depth)
	}
}
