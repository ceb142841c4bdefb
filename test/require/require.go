// Package require ends tests whose preconditions do not hold.
package require

import (
	"errors"
	"testing"
)

// NoError ends the test with all errors that are not nil.
func NoError(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}
