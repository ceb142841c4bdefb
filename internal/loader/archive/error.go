package archive

import "fmt"

// Kind tells why an image or a folder was refused.
type Kind string

const (
	// KindLimit says that a limit is exceeded.
	KindLimit Kind = "limit exceeded"
	// KindEntry says that an entry may not be in a package.
	KindEntry Kind = "entry refused"
	// KindCorrupt says that the content is not what an image layer is.
	KindCorrupt Kind = "corrupt"
)

// Error says what was refused and why.
type Error struct {
	Kind Kind
	// Layer counts from 1; 0 for a folder or a whole image.
	Layer int
	// Entry is the name as it stands in the archive.
	Entry string
	// Details say what is wrong.
	Details string
	// Remedy says what to do, as a sentence.
	Remedy string
	// Err is the cause, where there is one.
	Err error
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

func limitError(layer int, entry, remedy, format string, args ...any) *Error {
	return &Error{Kind: KindLimit, Layer: layer, Entry: entry, Details: fmt.Sprintf(format, args...), Remedy: remedy}
}

func entryError(layer int, entry, remedy, format string, args ...any) *Error {
	return &Error{Kind: KindEntry, Layer: layer, Entry: entry, Details: fmt.Sprintf(format, args...), Remedy: remedy}
}
