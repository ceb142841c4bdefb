package celcost

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Estimate returns the size of the largest list or map that an expression may build from variables
// of a size.
func Estimate(e ast.Expr, variable float64) float64 {
	est := &estimator{variable: variable}
	est.size(e, nil)
	return est.most
}

type estimator struct{ variable, most float64 }

// scope is a variable of a comprehension around an expression.
type scope struct {
	name   string
	size   float64
	around *scope
}

func (e *estimator) size(x ast.Expr, in *scope) float64 {
	n := e.sizeOf(x, in)
	e.most = max(e.most, n)
	return n
}

func (e *estimator) sizeOf(x ast.Expr, in *scope) float64 {
	sum := 1.0
	switch x.Kind() {
	case ast.IdentKind:
		for s := in; s != nil; s = s.around {
			if s.name == x.AsIdent() {
				return s.size
			}
		}
		return e.variable
	case ast.SelectKind:
		return e.size(x.AsSelect().Operand(), in)
	case ast.ListKind, ast.MapKind, ast.StructKind:
		for _, item := range ast.NavigateExpr(nil, x).Children() {
			sum += e.size(item, in)
		}
	case ast.CallKind:
		return e.call(x.AsCall(), in)
	case ast.ComprehensionKind:
		return e.comprehension(x.AsComprehension(), in)
	}

	return sum
}

// boolOperators return a bool.
var boolOperators = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.In: true, operators.LogicalAnd: true, operators.LogicalOr: true,
	operators.LogicalNot: true, operators.NotStrictlyFalse: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true,
}

func (e *estimator) call(c ast.CallExpr, in *scope) float64 {
	sizes, sum := make([]float64, len(c.Args())), 1.0
	if c.IsMemberFunction() {
		sum += e.size(c.Target(), in)
	}

	for i, arg := range c.Args() {
		sizes[i] = e.size(arg, in)
		sum += sizes[i]
	}

	switch {
	case boolOperators[c.FunctionName()]:
		return 1
	case c.FunctionName() == operators.Conditional && len(sizes) == 3:
		return max(sizes[1], sizes[2])
	case c.FunctionName() == operators.Index && len(sizes) == 2:
		return sizes[0]
	}

	return sum
}

// comprehension adds up the elements of the range; everything else comes once for each.
func (e *estimator) comprehension(c ast.ComprehensionExpr, in *scope) float64 {
	elements := e.size(c.IterRange(), in)
	init := e.size(c.AccuInit(), in)
	step := func(element float64) float64 {
		inner := &scope{c.AccuVar(), 0, &scope{c.IterVar(), element, in}}
		if c.HasIterVar2() {
			inner = &scope{c.IterVar2(), element, inner}
		}
		e.size(c.LoopCondition(), inner)
		return e.size(c.LoopStep(), inner)
	}

	without := step(0)
	with := step(elements)
	if k := c.AccuInit().Kind(); k != ast.ListKind && k != ast.MapKind {
		return 1
	}

	total := init + without*elements + with - without
	e.most = max(e.most, total)
	return total
}
