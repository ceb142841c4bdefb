package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/metrics"

	"github.com/itchyny/gojq"

	"lockstep.run/lockstep/internal/limits"
)

// query is a jq expression. gojq gives it no environment, no input and no
// modules where none are handed in.
type query struct{ code *gojq.Code }

func compile(text string) (*query, error) {
	if len(text) > limits.QueryBytes {
		return nil, fmt.Errorf("--query has %d bytes; the limit is %d", len(text), limits.QueryBytes)
	}
	parsed, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--query is no jq expression: %w", err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return nil, fmt.Errorf("--query is no jq expression that works here: %w", err)
	}
	return &query{code}, nil
}

// run returns all results for the JSON form of a value.
func (q *query) run(ctx context.Context, value any) ([]any, error) {
	input, err := decoded(value)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limits.QueryTime, fmt.Errorf("stopped after %s", limits.QueryTime))
	defer cancel()
	bounded := &bounds{Context: ctx, heap: heapBytes() + limits.QueryHeapBytes}
	var results []any
	left := limits.QueryOutputBytes
	for iter := q.code.RunWithContext(bounded, input); ; {
		result, more := iter.Next()
		if !more {
			return results, nil
		}
		if err, failed := result.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return results, nil
			}
			return nil, err
		}
		if left -= size(result, left); left < 0 {
			return nil, fmt.Errorf("the results have more than %d bytes", limits.QueryOutputBytes)
		}
		results = append(results, result)
	}
}

// decoded is a value as jq knows it; numbers keep their digits.
func decoded(value any) (any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return out, nil
}

// encoded is a result as JSON: jq has numbers that JSON has not. Values that are
// no results are left as they are.
func encoded(value any) any {
	switch value.(type) {
	case nil, bool, string, int, float64, []any, map[string]any:
	default:
		return value
	}
	raw, err := gojq.Marshal(value)
	if err != nil {
		return value
	}
	return json.RawMessage(raw)
}

// size is about the length of a value as JSON; counting ends at most.
func size(value any, most int) int {
	n := 2
	switch value := value.(type) {
	case string:
		n += len(value)
	case []any:
		for _, element := range value {
			if n += size(element, most-n); n > most {
				return n
			}
		}
	case map[string]any:
		for key, element := range value {
			if n += len(key) + 4 + size(element, most-n); n > most {
				return n
			}
		}
	default:
		n += 8
	}
	return n
}

// bounds end an evaluation after limits.QuerySteps, and where memory has grown
// too much: gojq looks at Done once per instruction, and one instruction can do
// no more than double a value.
type bounds struct {
	context.Context
	steps   int
	heap    uint64
	stopped error
}

// everySteps is how often memory is looked at, which takes about a microsecond.
const everySteps = 16

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done implements context.Context.
func (b *bounds) Done() <-chan struct{} {
	if b.steps++; b.steps > limits.QuerySteps {
		b.stopped = fmt.Errorf("stopped after %d steps", limits.QuerySteps)
	} else if b.steps%everySteps == 0 && heapBytes() > b.heap {
		b.stopped = fmt.Errorf("stopped because it took more than %d bytes of memory", limits.QueryHeapBytes)
	}
	if b.stopped != nil {
		return closed
	}
	return b.Context.Done()
}

// Err implements context.Context.
func (b *bounds) Err() error {
	if b.stopped != nil {
		return b.stopped
	}
	return context.Cause(b.Context)
}

// heapBytes is the memory in use by values, with those that await collection.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
