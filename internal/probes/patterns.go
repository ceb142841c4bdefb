package probes

import (
	"regexp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"lockstep.run/lockstep/internal/limits/regexcost"
)

const probePatternSteps = 10 // steps of a regular expression, up to 20 ns each, per unit of cost

// CEL counts the cost of a regular expression after running it. Therefore matches, find and findAll
// are declared here with a check that runs first.

// withoutMatches is CEL's standard library without matches.
var withoutMatches = &env.LibrarySubset{ExcludeFunctions: []*env.Function{{Name: "matches"}}}

// patternFunctions declares the functions with the overloads of CEL and of Kubernetes' regex
// library, so that existing rules compile unchanged.
func patternFunctions() []cel.EnvOption {
	text, texts := cel.StringType, []*cel.Type{cel.StringType, cel.StringType}
	matches := onPattern(func(x *regexp.Regexp, text string, _ int) ref.Val { return types.Bool(x.MatchString(text)) })
	find := onPattern(func(x *regexp.Regexp, text string, _ int) ref.Val { return types.String(x.FindString(text)) })
	findAll := onPattern(func(x *regexp.Regexp, text string, n int) ref.Val {
		return types.NewStringList(types.DefaultTypeAdapter, x.FindAllString(text, n))
	})
	return []cel.EnvOption{
		cel.Function("matches", cel.Overload("matches", texts, cel.BoolType), cel.MemberOverload("matches_string", texts, cel.BoolType), matches),
		cel.Function("find", cel.MemberOverload("string_find_string", texts, text), find),
		cel.Function("findAll", cel.MemberOverload("string_find_all_string", texts, cel.ListType(text)),
			cel.MemberOverload("string_find_all_string_int", []*cel.Type{text, text, cel.IntType}, cel.ListType(text)), findAll),
	}
}

// onPattern makes a function of a text, a pattern and an optional number, which is -1 if omitted.
func onPattern(run func(x *regexp.Regexp, text string, n int) ref.Val) cel.FunctionOpt {
	return cel.SingletonFunctionBinding(func(args ...ref.Val) ref.Val {
		text, expression, ok := patternCall(args)
		if !ok {
			return types.NoSuchOverloadErr()
		}
		n := types.Int(-1)
		if len(args) > 2 {
			if n, ok = args[2].(types.Int); !ok {
				return types.MaybeNoSuchOverloadErr(args[2])
			}
		}
		if err := regexcost.Check(expression, len(text)); err != nil {
			return types.NewErr("%s", err)
		}
		compiled, err := regexp.Compile(expression)
		if err != nil {
			return types.NewErr("%s", err)
		}
		return run(compiled, text, int(n))
	})
}

// patternCall returns text and pattern of a call; ok is false if they are not strings, which a
// dynamic value can be.
func patternCall(args []ref.Val) (text, expression string, ok bool) {
	if len(args) < 2 {
		return "", "", false
	}
	t, ok := args[0].(types.String)
	x, also := args[1].(types.String)
	return string(t), string(x), ok && also
}

// costs are the costs of Kubernetes; regular expressions cost their actual work.
type costs struct{ library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if !usesPattern(function) {
		return c.CostEstimator.CallCost(function, overload, args, result)
	}

	text, expression, ok := patternCall(args)
	if !ok {
		return nil
	}

	size, err := regexcost.Size(expression)
	if err != nil {
		size = 1 // it did not run
	}

	cost := 1 + uint64(size)*uint64(len(text)+1)/probePatternSteps
	return &cost
}

var _ interpreter.ActualCostEstimator = (*costs)(nil)

// usesPattern reports whether a function runs a regular expression.
func usesPattern(function string) bool {
	return function == "matches" || function == "find" || function == "findAll"
}

// patterns reports whether a rule uses regular expressions, and rejects invalid constant ones.
// Patterns that an expression computes are checked when it runs.
func patterns(rule ast.Expr) (uses bool, err error) {
	args := ast.NavigateExpr(nil, rule).Children()
	if rule.Kind() == ast.CallKind && usesPattern(rule.AsCall().FunctionName()) {
		uses = true
		if len(args) > 1 && args[1].Kind() == ast.LiteralKind {
			if text, ok := args[1].AsLiteral().(types.String); ok {
				err = regexcost.Check(string(text), 0)
			}
		}
	}

	for i := 0; i < len(args) && err == nil; i++ {
		var inner bool
		inner, err = patterns(args[i])
		uses = uses || inner
	}

	return uses, err
}
