package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"lockstep.run/lockstep/internal/limits"
)

// variables of all expressions.
var variables = []string{"package", "config", "images", "dependencies", "environment"}

// Evaluator evaluates expressions against one context. It is not safe for
// concurrent use.
type Evaluator struct {
	input    map[string]any
	options  []cel.EnvOption
	env      *cel.Env
	compiled map[string]compiled
}

type compiled struct {
	program cel.Program
	err     error
}

// New returns an Evaluator for a context: the values of JSON by variable.
func New(context map[string]any) *Evaluator {
	e := &Evaluator{input: map[string]any{}, compiled: map[string]compiled{}}
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
	out := &Evaluator{input: map[string]any{"cond": conditions}, compiled: map[string]compiled{}}
	for name, value := range e.input {
		out.input[name] = value
	}
	out.options = append(append(out.options, e.options...), cel.Variable("cond", cel.MapType(cel.StringType, cel.BoolType)))
	return out
}

// Bool evaluates an expression.
func (e *Evaluator) Bool(ctx context.Context, text string) (bool, error) {
	program, err := e.compile(text)
	if err != nil {
		return false, err
	}
	value, _, err := program.ContextEval(ctx, e.input)
	if err != nil {
		return false, fmt.Errorf("evaluation failed: %w", err)
	}
	result, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the result is a %s, not a bool", value.Type().TypeName())
	}
	return result, nil
}

func (e *Evaluator) compile(text string) (cel.Program, error) {
	if done, ok := e.compiled[text]; ok {
		return done.program, done.err
	}
	program, err := e.compileNew(text)
	e.compiled[text] = compiled{program, err}
	return program, err
}

func (e *Evaluator) compileNew(text string) (cel.Program, error) {
	if len(text) > limits.ExpressionBytes {
		return nil, fmt.Errorf("the expression has %d bytes; the limit is %d", len(text), limits.ExpressionBytes)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the expression is empty")
	}
	if e.env == nil {
		env, err := cel.NewEnv(e.options...)
		if err != nil {
			return nil, err
		}
		e.env = env
	}
	ast, issues := e.env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("column %d: %s", first.Location.Column()+1, first.Message)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression is of type %s, not bool", t)
	}
	return e.env.Program(ast, cel.CostLimit(limits.ExpressionCost), cel.InterruptCheckFrequency(100))
}
