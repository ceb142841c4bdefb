package measure

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestTesterTurnsFailuresIntoAnError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		f      func(testing.TB)
		want   string
	}{
		"success": {"nothing failed", func(testing.TB) {}, ""},
		"fatal":   {"Fatal ends the function", func(tb testing.TB) { tb.Fatal(errors.New("first")); tb.Error("never") }, "bench: first"},
		"errors":  {"Errorf does not", func(tb testing.TB) { tb.Errorf("%d", 1); tb.Error(2) }, "bench: 1\n2"},
		"fatal clean-up": {"a clean-up may fail too", func(tb testing.TB) {
			tb.Cleanup(func() { tb.Fatalf("%s", "late") })
		}, "bench: late"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := WithTester(t.Context(), "bench", t.Output(), test.f)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
			}
		})
	}
}

func TestTesterCleansUp(t *testing.T) {
	t.Parallel()
	var order []string
	var dir string
	err := WithTester(t.Context(), "bench", t.Output(), func(tb testing.TB) {
		dir = tb.TempDir()
		tb.Cleanup(func() {
			order = append(order, "first")
			if tb.Context().Err() == nil {
				t.Error("the context is not cancelled in a clean-up")
			}
		})
		tb.Cleanup(func() { order = append(order, "second"); tb.Fatal("stop") })
		tb.Fatal("here")
	})
	if err == nil || strings.Join(order, " ") != "second first" {
		t.Errorf("clean-ups ran as %v, error %v", order, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

func TestTesterCleansUpAfterAPanic(t *testing.T) {
	t.Parallel()
	cleaned := false
	defer func() {
		if recover() == nil || !cleaned {
			t.Errorf("want the panic to go on, after the clean-ups (cleaned: %t)", cleaned)
		}
	}()
	_ = WithTester(t.Context(), "bench", t.Output(), func(tb testing.TB) {
		tb.Cleanup(func() { cleaned = true })
		panic("a defect")
	})
}
