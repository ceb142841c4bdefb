package archive

import "fmt"

// Kind is the category of reasons for rejecting an image or a folder.
type Kind string

const (
	// KindLimit is an exceeded limit.
	KindLimit Kind = "limit exceeded"
	// KindEntry is an entry that a package must not have.
	KindEntry Kind = "entry refused"
	// KindCorrupt is content that is not an image layer.
	KindCorrupt Kind = "corrupt"
)

// Error is why an image or a folder was rejected.
type Error struct {
	Kind Kind
	// Layer counts from 1; 0 for a folder or a whole image.
	Layer   int
	Entry   string
	Details string
	Remedy  string
	Err     error
}

// Error implements error.
func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Layer > 0 {
		s += fmt.Sprintf(" in layer %d", e.Layer)
	}
	if e.Entry != "" {
		s += fmt.Sprintf(": entry %.200q", e.Entry)
	}

	s += ": " + e.Details
	if e.Err != nil {
		s += fmt.Sprintf(": %v", e.Err)
	}
	if e.Remedy != "" {
		s += ". " + e.Remedy
	}

	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// limitError and entryError return errors of their kinds. layer is 0 for a folder.
func limitError(layer int, entry, remedy, format string, args ...any) *Error {
	return &Error{Kind: KindLimit, Layer: layer, Entry: entry, Details: fmt.Sprintf(format, args...), Remedy: remedy}
}

func entryError(layer int, entry, remedy, format string, args ...any) *Error {
	return &Error{Kind: KindEntry, Layer: layer, Entry: entry, Details: fmt.Sprintf(format, args...), Remedy: remedy}
}
