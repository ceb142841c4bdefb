package celcost

import (
	"fmt"

	"github.com/google/cel-go/common/ast"

	"lockstep.run/lockstep/internal/limits"
)

// Shape rejects an expression that takes long to check: the time grows with the third power
// of the depth of types, and literals and macros may each be a level.
func Shape(e ast.Expr) error {
	s := shape{}
	s.visit(e, 0)
	switch {
	case s.depth > limits.ExpressionNesting:
		return fmt.Errorf("lists and maps nest deeper than %d levels in the expression", limits.ExpressionNesting)
	case s.macros > limits.ExpressionMacros:
		return fmt.Errorf("the expression uses more than %d macros, such as map and exists", limits.ExpressionMacros)
	}
	return nil
}

type shape struct{ depth, macros int }

func (s *shape) visit(e ast.Expr, depth int) {
	all := func(depth int, inner ...ast.Expr) {
		for _, x := range inner {
			s.visit(x, depth)
		}
	}
	switch e.Kind() {
	case ast.ListKind:
		s.depth = max(s.depth, depth+1)
		all(depth+1, e.AsList().Elements()...)
	case ast.MapKind:
		s.depth = max(s.depth, depth+1)
		for _, entry := range e.AsMap().Entries() {
			all(depth+1, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			all(depth, field.AsStructField().Value())
		}
	case ast.SelectKind:
		all(depth, e.AsSelect().Operand())
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			all(depth, e.AsCall().Target())
		}
		all(depth, e.AsCall().Args()...)
	case ast.ComprehensionKind:
		s.macros++
		c := e.AsComprehension()
		all(depth, c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
}
