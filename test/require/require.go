// Package require has the most common checks of tests: preconditions, which end a test, and
// comparisons of whole values.
package require

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

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

// Equal fails the test, without ending it, with the differences of two values, including their
// unexported fields, and the reason why they have to be equal.
func Equal(t T, want, got any, reason ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(reason...), diff)
	}
}

// Contains fails the test, without ending it, if a text lacks a part that it has to have for the
// reason.
func Contains(t T, text, part string, reason ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s: %q is missing in\n%s", fmt.Sprint(reason...), part, text)
	}
}

// ErrorContains fails the test, without ending it, if an error is nil or its text lacks a part.
func ErrorContains(t T, err error, part string, reason ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: the error %v lacks %q", fmt.Sprint(reason...), err, part)
	}
}
