package fetch

import (
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Error is why a source could not be fetched. Its text contains no credentials.
type Error struct {
	Details string
	Remedy  string
	// Permanent is set if the fetch fails until the source, or what it names, changes; else it may succeed later.
	Permanent bool
	// Err is the cause where its text is part of Details, for errors.As.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Details
	}
	return strings.TrimSuffix(e.Details, ".") + ". " + e.Remedy
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Reason of the condition that reports the error.
func (e *Error) Reason() string { return corev1alpha1.ReasonFetchFailed }

func permanent(remedy, format string, args ...any) *Error {
	return &Error{Details: fmt.Sprintf(format, args...), Remedy: remedy, Permanent: true}
}
