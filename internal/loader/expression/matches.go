package expression

import (
	"regexp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/regexcost"
)

// withoutMatches is CEL without the function matches, whose cost is counted after it ran.
var withoutMatches = &env.LibrarySubset{ExcludeFunctions: []*env.Function{{Name: "matches"}}}

// matches declares the function as in CEL, with a check of its cost.
func (e *Evaluator) matches() cel.EnvOption {
	binding := cel.SingletonBinaryBinding(func(text, expression ref.Val) ref.Val {
		t, ok := text.(types.String)
		x, also := expression.(types.String)
		if !ok || !also {
			return types.MaybeNoSuchOverloadErr(text)
		}
		return e.match(string(t), string(x))
	})
	texts := []*cel.Type{cel.StringType, cel.StringType}
	return cel.Function("matches", cel.Overload("matches", texts, cel.BoolType), cel.MemberOverload("matches_string", texts, cel.BoolType), binding)
}

// match runs a pattern after its cost was checked, alone and in the sum of the package.
func (e *Evaluator) match(text, expression string) ref.Val {
	if err := regexcost.Check(expression, len(text)); err != nil {
		return types.NewErr("%s", err)
	}

	size, err := regexcost.Size(expression)
	if err != nil {
		return types.NewErr("%s", err)
	}
	if e.spent.match += int64(size) * int64(len(text)+1); e.spent.match > limits.TemplateMatchWork {
		return types.NewErr("the regular expressions of the package take more than %d steps", limits.TemplateMatchWork)
	}

	compiled, err := regexp.Compile(expression)
	if err != nil {
		return types.NewErr("%s", err)
	}

	return types.Bool(compiled.MatchString(text))
}
