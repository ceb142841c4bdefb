package probes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/celcost"
)

const probeCELTime = 5 * time.Second // comparing large values takes long, but is a single step for CEL

// celPrograms shares rules between revisions, because most of them repeat in each revision of a
// package.
var celPrograms programs[celProgram]

// celEnvironment has the same libraries as Package Operator.
var celEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(append([]cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(withoutMatches)),
		cel.Variable(self, cel.DynType),
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		ext.Strings(ext.StringsVersion(0)),
		library.URLs(),
		library.Lists(),
	}, patternFunctions()...)...)
})

// self is the variable that holds the probed object, as in Package Operator.
const self = "self"

// celProgram is a compiled rule with its text, for messages, and the fields that it reads.
type celProgram struct {
	rule    string
	program cel.Program
	reads   [][]string
}

// compileCEL parses, bounds, checks and compiles a rule, in this order, so that each step sees only
// input whose cost the step before has bounded. The error is a refusal, except for a broken
// environment.
func compileCEL(rule string) (*celProgram, error) {
	if len(rule) > limits.ProbeCELBytes {
		return nil, &refusal{
			fmt.Sprintf("rule of %d bytes, the limit is %d", len(rule), limits.ProbeCELBytes),
			"shorten it, or split it into several probes",
		}
	}

	environment, err := celEnvironment()
	if err != nil {
		return nil, fmt.Errorf("make CEL environment: %w", err)
	}

	// Parsing is linear; the type check is not, so it runs only on expressions of a bounded shape.
	ast, issues := environment.Parse(rule)
	if issues.Err() == nil {
		if err := celcost.Shape(ast.NativeRep().Expr()); err != nil {
			return nil, &refusal{err.Error(), "split it into several probes"}
		}
		ast, issues = environment.Check(ast)
	}

	if issues.Err() != nil {
		// All issues on one line as LINE:COLUMN: MESSAGE. CEL's own form draws the rule with a caret
		// below it, which conditions cannot show.
		var texts []string
		for _, issue := range issues.Errors() {
			texts = append(texts, fmt.Sprintf("%d:%d: %s", issue.Location.Line(), issue.Location.Column()+1, issue.Message))
		}
		return nil, &refusal{
			strings.Join(texts, ", "),
			"write a CEL expression of type bool; the object is the variable self",
		}
	}

	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, &refusal{
			fmt.Sprintf("the type of the rule is %s, not bool", ast.OutputType()),
			"compare the value, e.g. self.status.ready == true",
		}
	}

	uses, err := patterns(ast.NativeRep().Expr())
	if err != nil {
		return nil, &refusal{err.Error(), "correct the regular expression"}
	}

	options := []cel.EvalOption{cel.OptTrackCost}
	if !uses { // the optimizer would run constant patterns unchecked
		options = append(options, cel.OptOptimize)
	}

	program, err := environment.Program(ast,
		cel.EvalOptions(options...),
		cel.CostTracking(&costs{}),
		cel.CostLimit(limits.ProbeCELCost),
		// CEL ignores the context if this is unset. It counts iterations of comprehensions, and one
		// can take long.
		cel.InterruptCheckFrequency(1),
		celcost.Option(),
	)
	if err != nil {
		return nil, &refusal{err.Error(), "correct the constant that the message names"}
	}

	return &celProgram{rule: rule, program: program, reads: celPaths(ast.NativeRep().Expr())}, nil
}

// celProbe evaluates a shared rule with the message of one entry.
type celProbe struct {
	*celProgram
	message string
}

// evaluate reports an evaluation that fails as Unknown, and every result other than true as False
// with the author's message.
func (p celProbe) evaluate(o *object) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), probeCELTime)
	defer cancel()
	variables := map[string]any{self: o.root}
	// The budget is per evaluation; programs are shared and can run at the same time.
	celcost.NewBudget().AddTo(variables)
	value, details, err := p.program.ContextEval(ctx, variables)
	if cost := details.ActualCost(); cost != nil {
		o.cost += int(min(*cost, limits.ProbeObjectCost)) // the last step can exceed the limit
	} else {
		o.cost += limits.ProbeCELCost
	}
	if err != nil {
		return outcome{message: fmt.Sprintf("CEL program failed: %s, in the rule %s", celErrorText(err, o), quoted(strings.Join(strings.Fields(p.rule), " ")))}
	}
	if value == types.True {
		return outcome{status: True}
	}

	return outcome{status: False, message: p.message}
}

// errCELCost is the text of cel-go's error, which has no type of its own.
const errCELCost = "actual cost limit exceeded"

// celErrorText returns the text of an evaluation's error without CEL's wrapping, and without values
// of a Secret.
func celErrorText(err error, o *object) string {
	switch {
	case strings.Contains(err.Error(), errCELCost):
		return fmt.Sprintf("%s: the limit is %d", errCELCost, limits.ProbeCELCost)
	case o.secret:
		// Conversion errors quote the value, which can be a Secret's.
		return "the rule cannot be evaluated on this object"
	default:
		for errors.Unwrap(err) != nil {
			err = errors.Unwrap(err)
		}
		return quoted(err.Error())
	}
}

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
