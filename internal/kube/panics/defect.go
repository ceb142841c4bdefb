package panics

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// Error is a panic that was caught.
type Error struct {
	doing, said string
	stack       []byte
}

// Error says what failed, without any content.
func (e *Error) Error() string {
	return fmt.Sprintf("%s failed by a defect of this engine, please report it: %s", e.doing, e.said)
}

// Of returns what recover returned as an error, in words that name what was done. It
// is for the deferred function, from which the stack still shows the panic. An Error
// may be raised again, for another goroutine, and keeps its stack.
func Of(cause any, doing string) *Error {
	switch cause := cause.(type) {
	case *Error:
		return &Error{doing: doing, said: cause.doing + ": " + cause.said, stack: cause.stack}
	case runtime.Error:
		return &Error{doing: doing, said: cause.Error(), stack: debug.Stack()}
	}
	return &Error{doing: doing, said: "what it said is left out, it may hold a sensitive value", stack: debug.Stack()}
}

// Caught is Of for who does not raise it again: it logs the error with its stack.
func Caught(log logr.Logger, cause any, doing string) *Error {
	e := Of(cause, doing)
	log.Error(e, "Caught a panic", "stack", string(e.stack))
	return e
}
