package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/itchyny/gojq"

	"lockstep.run/lockstep/internal/limits"
)

// query is a jq expression. gojq gives it no environment, no input and no
// modules where none are handed in.
type query struct {
	code    *gojq.Code
	timeout time.Duration
	heap    uint64
}

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
	return &query{code: code, timeout: limits.QueryTime, heap: limits.QueryHeapBytes}, nil
}

// run returns all results for the JSON form of a value. Beyond a limit it is cancelled and
// not awaited: jq checks for that between its steps, and one step can be long.
func (q *query) run(ctx context.Context, value any) ([]any, error) {
	input, err := decoded(value)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, fmt.Errorf("stopped after %s", q.timeout))
	defer cancel()
	type outcome struct {
		results []any
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		results, err := collect(q.code.RunWithContext(ctx, input))
		done <- outcome{results, err}
	}()
	most := heapBytes() + q.heap
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case o := <-done:
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return o.results, o.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-look.C:
			if heapBytes() > most {
				return nil, fmt.Errorf("stopped because it took more than %d bytes of memory", q.heap)
			}
		}
	}
}

// lookInterval is the time between two checks of the memory, in which some 10 MB can be
// filled.
const lookInterval = 10 * time.Millisecond

// collect returns all results.
func collect(iter gojq.Iter) (results []any, err error) {
	for left := limits.QueryOutputBytes; ; {
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

// heapBytes is the memory in use by values, with those that await collection.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
