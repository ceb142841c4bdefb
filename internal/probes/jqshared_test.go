package probes

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// during is a value that does something while it is read.
type during func()

func (d during) String() string { d(); return "" }

// A program is shared by all whose probes have its text: an evaluation waits for no other, and each has an account of its own.
func TestJQIsShared(t *testing.T) {
	t.Parallel()
	text := `[.items[] | tostring] | length`
	program, err := jqPrograms.get(text, compileJQ)
	require.NoError(t, err)
	evaluate := func(items ...any) (any, error) {
		value, _, err := program.read(&object{root: map[string]any{"items": items}})
		return value, err
	}
	_, err = evaluate(during(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = evaluate("other")
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("an evaluation waits for the other")
		}
	}))
	require.NoError(t, err)
	large := strings.Repeat("x", limits.ProbeJQWork)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			switch value, err := evaluate("a", []string{"b", large}[i%2]); {
			case i%2 == 0 && (err != nil || value != int64(2)):
				t.Errorf("a small one is %v, %v", value, err)
			case i%2 == 1 && !errors.Is(err, errBound):
				t.Errorf("a large one is %v, %v", value, err)
			}
		})
	}
	all.Wait()
}
