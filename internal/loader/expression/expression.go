package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/celcost"
)

const differentExpressions = 10_000 // compiled expressions to keep, of 10 KiB each

// EvaluationFailed is the prefix of errors of expressions that compile.
const EvaluationFailed = "evaluation failed"

// variables are the maps of the context. All of them exist in every installation, so an expression
// compiles everywhere or nowhere.
var variables = []string{"package", "config", "images", "dependencies", "environment"}

// Evaluator evaluates expressions in one context. It is not safe for concurrent use.
type Evaluator struct {
	input    map[string]any
	options  []cel.EnvOption
	env      *cel.Env
	compiled map[string]compiled
	spent    *spent
}

// spent is the cost so far, of an Evaluator and the one that WithConditions derives from it.
type spent struct {
	cost   uint64
	bytes  int
	number int
	match  int64
	built  *celcost.Budget
}

// compiled is a program, or the reason why there is none. Path rules and annotations repeat
// expressions.
type compiled struct {
	program cel.Program
	err     error
}

// New returns an Evaluator for a context, which maps variables to JSON values.
func New(context map[string]any) *Evaluator {
	e := &Evaluator{input: map[string]any{}, compiled: map[string]compiled{}, spent: &spent{built: celcost.NewBudget()}}
	e.spent.built.AddTo(e.input)
	e.options = append(e.options, cel.StdLib(cel.StdLibSubset(withoutMatches)), e.matches(), cel.EagerlyValidateDeclarations(true))
	for _, name := range variables {
		value, ok := context[name]
		if !ok || value == nil {
			value = map[string]any{}
		}
		e.input[name] = value
		e.options = append(e.options, cel.Variable(name, cel.MapType(cel.StringType, cel.DynType)))
	}
	return e
}

// WithConditions returns an Evaluator that also knows the variable cond.
func (e *Evaluator) WithConditions(conditions map[string]bool) *Evaluator {
	out := &Evaluator{input: map[string]any{"cond": conditions}, compiled: map[string]compiled{}, spent: e.spent}
	for name, value := range e.input {
		out.input[name] = value
	}
	out.options = append(append(out.options, e.options...), cel.Variable("cond", cel.MapType(cel.StringType, cel.BoolType)))
	return out
}

// Bool evaluates an expression.
func (e *Evaluator) Bool(ctx context.Context, text string) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}

	program, err := e.compile(text)
	if err != nil {
		return false, err
	}

	value, details, err := program.ContextEval(ctx, e.input)
	if limit := e.charge(details, err); limit != nil {
		return false, limit
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", EvaluationFailed, err)
	}

	result, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the result is a %s, not a bool", value.Type().TypeName())
	}

	return result, nil
}

// compile returns the program of an expression, compiling it at most once.
func (e *Evaluator) compile(text string) (cel.Program, error) {
	if done, ok := e.compiled[text]; ok {
		return done.program, done.err
	}
	e.spent.number++
	if e.spent.bytes += len(text); e.spent.bytes > limits.ExpressionsBytes || e.spent.number > differentExpressions {
		return nil, fmt.Errorf("the package has more than %d different expressions, or %d bytes of them", differentExpressions, limits.ExpressionsBytes)
	}
	program, err := e.compileNew(text)
	e.compiled[text] = compiled{program, err}
	return program, err
}

// compileNew checks size, syntax, shape and type. A dynamic type is checked when its value is
// known.
func (e *Evaluator) compileNew(text string) (cel.Program, error) {
	if len(text) > limits.ExpressionBytes {
		return nil, fmt.Errorf("the expression has %d bytes; the limit is %d", len(text), limits.ExpressionBytes)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the expression is empty")
	}

	if e.env == nil {
		env, err := cel.NewCustomEnv(e.options...)
		if err != nil {
			return nil, err
		}
		e.env = env
	}

	ast, issues := e.env.Parse(text)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	// The type check is the expensive step, so the shape is checked before it.
	if err := celcost.Shape(ast.NativeRep().Expr()); err != nil {
		return nil, err
	}
	if ast, issues = e.env.Check(ast); issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression is of type %s, not bool", t)
	}

	return e.env.Program(ast, cel.CostLimit(limits.ExpressionCost), cel.InterruptCheckFrequency(1), celcost.Option())
}

// firstOf returns the first issue with its column. The others are mostly consequences.
func firstOf(issues *cel.Issues) error {
	first := issues.Errors()[0]
	return fmt.Errorf("column %d: %s", first.Location.Column()+1, first.Message)
}

// charge adds the cost of an evaluation. An evaluation that failed without a known cost counts in
// full.
func (e *Evaluator) charge(details *cel.EvalDetails, err error) error {
	cost := uint64(limits.ExpressionCost)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	} else if err == nil {
		cost = 0
	}
	if e.spent.cost += cost; e.spent.cost > limits.ExpressionsCost {
		return fmt.Errorf("the expressions of the package cost more than %d", limits.ExpressionsCost)
	}
	return nil
}
