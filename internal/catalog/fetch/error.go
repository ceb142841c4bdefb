package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/archive"
)

// Error explains why a source could not be fetched. Its text contains no credentials.
type Error struct {
	Details string
	Remedy  string
	// Permanent is set if the fetch fails until the source, or an object that it names, changes.
	// Otherwise it can succeed later.
	Permanent bool
	// Err is the cause for errors.As, if its text is part of Details.
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

// Reason is the reason of the condition that reports the error.
func (e *Error) Reason() string { return corev1alpha1.ReasonFetchFailed }

// permanent returns an error that lasts until the source changes.
func permanent(remedy, format string, args ...any) *Error {
	return &Error{Details: fmt.Sprintf(format, args...), Remedy: remedy, Permanent: true}
}

// contentError is the error of reading a download, except the caller's cancellation.
func contentError(err error) error {
	var content *archive.Error
	switch {
	case errors.As(err, &content):
		return &Error{Details: content.Error(), Permanent: true, Err: content}
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errFetchTime):
		return err
	}
	return permanent("Make the file again.", "the file is damaged: %v", err)
}
