package celcost

import (
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"lockstep.run/lockstep/internal/limits"
)

// Budget is the remaining size that evaluations can build. It is not safe for concurrent use.
type Budget struct{ left int }

// NewBudget returns a budget of limits.ExpressionWork.
func NewBudget() *Budget { return &Budget{limits.ExpressionWork} }

// variable is the name of a Budget, which no expression can use.
const variable = "#lockstep.budget"

// AddTo puts the budget among the variables of an evaluation.
func (b *Budget) AddTo(variables map[string]any) { variables[variable] = b }

// Option makes a program weigh the values that it builds. Evaluations need a Budget.
func Option() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		made, ok := i.(interpreter.InterpretableConstructor)
		if !ok || constant(made) {
			return i, nil
		}
		return &weighed{made}, nil
	})
}

// constant reports whether a list or map is no longer than its text.
func constant(made interpreter.InterpretableConstructor) bool {
	for _, value := range made.InitVals() {
		if _, ok := value.(interpreter.InterpretableConst); !ok {
			return false
		}
	}
	return true
}

type weighed struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (w *weighed) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := w.InterpretableConstructor.Exec(frame)
	budget, ok := frame.ResolveName(variable)
	if !ok {
		return types.NewErr("the expression is evaluated without a budget")
	}
	return budget.(*Budget).spend(value)
}

// Eval implements interpreter.Interpretable.
func (w *weighed) Eval(activation interpreter.Activation) ref.Val {
	return w.Exec(interpreter.AsFrame(activation))
}

// spend returns the value, or an error if it is too large.
func (b *Budget) spend(value ref.Val) ref.Val {
	m := meter{}
	m.add(value)
	if m.values > limits.ExpressionValues {
		return types.NewErr("the expression builds a list or map of more than %d values", limits.ExpressionValues)
	}
	if b.left -= m.values; b.left < 0 {
		return types.NewErr("the lists and maps that are built have more than %d values", limits.ExpressionWork)
	}
	return value
}

// meter counts the values within a value, up to the limit.
type meter struct{ values int }

func (m *meter) add(value ref.Val) {
	switch v := value.(type) {
	case traits.Lister:
		if !m.tooMany(v) {
			m.native(v.Value())
		}
	case traits.Mapper:
		if !m.tooMany(v) {
			m.native(v.Value())
		}
	default:
		m.values++
	}
}

// native adds values as Go has them, which is several times as fast.
func (m *meter) native(value any) {
	if m.values++; m.values > limits.ExpressionValues {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			m.native(item)
		}
	case map[string]any:
		for _, item := range v {
			m.native(item)
		}
	case []ref.Val:
		for _, item := range v {
			m.add(item)
		}
	case map[ref.Val]ref.Val:
		for _, item := range v {
			m.add(item)
		}
	case ref.Val:
		m.values--
		m.add(v)
	default:
		m.reflected(reflect.ValueOf(v))
	}
}

func (m *meter) reflected(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := 0; i < v.Len() && m.values <= limits.ExpressionValues; i++ {
			m.native(v.Index(i).Interface())
		}
	case reflect.Map:
		for it := v.MapRange(); m.values <= limits.ExpressionValues && it.Next(); {
			m.native(it.Value().Interface())
		}
	}
}

// tooMany checks the number of elements before any of them.
func (m *meter) tooMany(v traits.Sizer) bool {
	n, ok := v.Size().(types.Int)
	if ok && n > limits.ExpressionValues {
		m.values = limits.ExpressionValues + 1
		return true
	}
	return false
}
