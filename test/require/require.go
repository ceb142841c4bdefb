// Package require has the most common checks of tests: preconditions, which end a test, and
// comparisons of whole values.
package require

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"
)

// T is a test, a benchmark, or a run of a property.
type T interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// NoError ends the test with all errors that are not nil.
func NoError(t T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test, without ending it, with the differences of two values and the reason why
// they have to be equal.
func Equal(t T, want, got any, reason ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(reason...), diff)
	}
}
