package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"sync"
	"time"

	"github.com/itchyny/gojq"

	"lockstep.run/lockstep/internal/limits"
)

const probeJQTime = time.Second // a safety net far above limits.ProbeJQSteps

// jqPrograms shares expressions between revisions, like celPrograms.
var jqPrograms programs[jqProgram]

// errBound is the error of an evaluation that reached a limit.
var errBound = errors.New("stopped")

var (
	errJQSteps = fmt.Errorf("%w after %d steps", errBound, limits.ProbeJQSteps)
	errJQTime  = fmt.Errorf("%w after %s", errBound, probeJQTime)
	errJQWork  = fmt.Errorf("%w because it built more than %d bytes of values", errBound, limits.ProbeJQWork)
	errJQBits  = fmt.Errorf("%w at an integer of more than %d bits", errBound, limits.ProbeJQNumberBits)
)

// jqProgram is a jq expression that yields one value; null and no value are treated as missing. jq
// does not bound the values it builds, so the compiled expression is a copy that accounts for them
// (jqguard.go).
type jqProgram struct {
	source string
	reads  [][]string

	// idle are evaluations (*jqEvaluation) that are not in use. Probes with the same text share a
	// program, so several can run at once.
	idle sync.Pool
}

// jqEvaluation is compiled code with its own account. It serves one evaluation at a time.
type jqEvaluation struct {
	code *gojq.Code
	// work is the number of bytes that the evaluation can still build. Once negative it stays so,
	// which stops `try` from recovering.
	work     int
	exceeded error
}

// compileJQ parses, guards and compiles an expression. Its error is a refusal.
func compileJQ(text string) (*jqProgram, error) {
	if len(text) > limits.ProbeJQBytes {
		return nil, &refusal{
			fmt.Sprintf("jq expression of %d bytes, the limit is %d", len(text), limits.ProbeJQBytes),
			"shorten it, or split it into several probes",
		}
	}

	query, err := gojq.Parse(text)
	if err != nil {
		return nil, &refusal{
			"neither a dotted path nor a jq expression: " + err.Error(),
			"write e.g. .status.replicas or .status.containerStatuses[0].ready",
		}
	}

	program := &jqProgram{source: text, reads: jqPaths(query)}
	if err := guardQuery(query); err != nil {
		return nil, err
	}

	first, err := newEvaluation(query)
	if err != nil {
		return nil, err
	}

	program.idle.Put(first)
	return program, nil
}

// newEvaluation compiles a guarded query with functions that charge the new evaluation's account.
func newEvaluation(query *gojq.Query) (*jqEvaluation, error) {
	e := &jqEvaluation{}
	var err error
	e.code, err = gojq.Compile(query,
		gojq.WithFunction(guardCharge, 0, 0, e.charge),
		gojq.WithFunction(guardShort, 0, 0, short),
		gojq.WithFunction(guardNumbers, 2, 2, numbers))
	if err != nil {
		return nil, &refusal{err.Error(), jqRemedy}
	}
	return e, nil
}

// evaluation returns an idle evaluation, or makes one. It parses the query again because gojq can
// modify a query that it compiles.
func (p *jqProgram) evaluation() (*jqEvaluation, error) {
	if e, ok := p.idle.Get().(*jqEvaluation); ok {
		return e, nil
	}
	query, err := gojq.Parse(p.source)
	if err != nil {
		return nil, err
	}
	if err := guardQuery(query); err != nil {
		return nil, err
	}
	return newEvaluation(query)
}

func (p *jqProgram) text() string { return p.source }

func (p *jqProgram) paths() [][]string { return p.reads }

// read returns the value in the types of Kubernetes JSON; found is false for null and for no value.
// The error can be one of the limits, which take precedence over the error that jq makes of them.
func (p *jqProgram) read(o *object) (any, bool, error) {
	e, err := p.evaluation()
	if err != nil {
		return nil, false, err
	}

	defer p.idle.Put(e)
	e.work, e.exceeded = limits.ProbeJQWork, nil
	timeout, cancel := context.WithTimeout(context.Background(), probeJQTime)
	defer cancel()
	steps := &stepContext{Context: timeout, left: limits.ProbeJQSteps}
	if o.jq == nil {
		o.jq = toJQ(o.root) // once per evaluation of a Set
	}
	value, err := single(e.code.RunWithContext(steps, o.jq))
	o.cost += limits.ProbeJQSteps - steps.left
	// An author's try could have caught the error of the limit, so the account decides.
	if e.exceeded != nil {
		return nil, false, e.exceeded
	}
	if err != nil || value == nil {
		return nil, false, err
	}
	// The result is charged as well: a path can return a large part of the object, which the
	// comparison then walks.
	if !e.spend(value) {
		return nil, false, e.exceeded
	}

	return fromJQ(value), true, nil
}

// single returns the only value, or nil if there is none.
func single(results gojq.Iter) (any, error) {
	value, found := results.Next()
	if !found {
		return nil, nil // gojq panics if Next is called again
	}
	if err, failed := value.(error); failed {
		return nil, err
	}

	next, more := results.Next()
	if err, failed := next.(error); failed {
		return nil, err
	}
	if more {
		return nil, errors.New("yields more than one value")
	}

	return value, nil
}

// stepContext ends an evaluation after a number of steps. gojq checks Done at each step.
type stepContext struct {
	context.Context
	left int
}

// ended is a closed channel for all evaluations that are out of steps.
var ended = make(chan struct{})

func init() { close(ended) }

// Done counts a step. gojq has no other hook that runs at each instruction.
func (c *stepContext) Done() <-chan struct{} {
	if c.left--; c.left < 0 {
		return ended
	}
	return c.Context.Done()
}

// Err returns the limit that was reached, which gojq passes on as the error of the evaluation.
func (c *stepContext) Err() error {
	if c.left < 0 {
		return errJQSteps
	}
	if c.Context.Err() != nil {
		return errJQTime
	}
	return nil
}

// charge is the function that the guard calls on each value that an expression builds.
func (e *jqEvaluation) charge(value any, _ []any) any {
	if !e.spend(value) {
		return e.exceeded
	}
	return value
}

// spend accounts for the size of a value. A shared value counts each time.
func (e *jqEvaluation) spend(value any) bool {
	if e.exceeded != nil {
		return false
	}

	// An element of a list takes 16 bytes even if it is null, and so does a value itself.
	e.work -= 16
	switch value := value.(type) {
	case string:
		e.work -= len(value)
	case *big.Int:
		if value.BitLen() > limits.ProbeJQNumberBits {
			e.exceeded = errJQBits
			return false
		}
	case []any:
		for _, element := range value {
			if !e.spend(element) {
				return false
			}
		}
	case map[string]any:
		for key, element := range value {
			e.work -= 16 + len(key)
			if !e.spend(element) {
				return false
			}
		}
	}

	if e.work < 0 {
		e.exceeded = errJQWork
	}

	return e.exceeded == nil
}

// short rejects long strings before jq parses them as numbers.
func short(value any, _ []any) any {
	if text, isString := value.(string); isString && len(text) > 64 {
		return errors.New("a string of more than 64 bytes is not a number")
	}
	return value
}

// numbers accepts only two numbers, because operators on other types have unbounded cost.
func numbers(_ any, args []any) any {
	for _, arg := range args {
		if gojq.TypeOf(arg) != "number" {
			return fmt.Errorf("arithmetic other than + takes numbers, not %s", gojq.TypeOf(arg))
		}
	}
	return []any{args[0], args[1]}
}

// toJQ converts decoded JSON into gojq's types: it knows int, but panics on int64.
func toJQ(value any) any {
	return convert(value, func(value any) any {
		switch value := value.(type) {
		case int64:
			return int(value)
		case nil, bool, string, float64:
			return value
		default:
			// Decoded JSON has no such type, and gojq would panic on it.
			return fmt.Sprint(value)
		}
	})
}

// fromJQ returns the value in the types of Kubernetes JSON: whole numbers are int64.
func fromJQ(value any) any {
	return convert(value, func(value any) any {
		if number, ok := value.(json.Number); ok {
			value, _ = number.Float64()
		}
		switch value := value.(type) {
		case int:
			return int64(value)
		case float64:
			// A larger float does not represent every whole number.
			if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
				return int64(value)
			}
		case *big.Int:
			if value.IsInt64() {
				return value.Int64()
			}
			number, _ := new(big.Float).SetInt(value).Float64()
			return number
		}
		return value
	})
}

// convert copies lists and maps with each scalar converted. The original is shared with other
// readers and keeps its types.
func convert(value any, scalar func(any) any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = convert(element, scalar)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(value))
		for key, element := range value {
			fields[key] = convert(element, scalar)
		}
		return fields
	default:
		return scalar(value)
	}
}

// JQ is a jq expression that reads one value of an object, within the functions and limits of
// probes.
type JQ struct{ program *jqProgram }

// CompileJQ compiles an expression. Its error names the refused part and a remedy.
func CompileJQ(text string) (*JQ, error) {
	program, err := jqPrograms.get(text, compileJQ)
	if err != nil {
		return nil, err
	}
	return &JQ{program}, nil
}

// Read returns the value; found is false if it is null or missing. The error of an evaluation can
// quote the object.
func (j *JQ) Read(root map[string]any) (value any, found bool, err error) {
	if value, found, err = j.program.read(&object{root: root}); err != nil {
		return nil, false, fmt.Errorf("jq: %w", err)
	}
	return value, found, nil
}
