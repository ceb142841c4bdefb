package panics

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// Error is a recovered panic.
type Error struct {
	doing, said string
	stack       []byte
}

// Error names the failed task, without any content.
func (e *Error) Error() string {
	return fmt.Sprintf("%s failed by a defect of this engine, please report it: %s", e.doing, e.said)
}

// Of returns the result of recover as an error that names the task. Call it in the deferred
// function, for the stack. An Error can be raised again on another goroutine, and keeps its stack.
func Of(cause any, doing string) *Error {
	switch cause := cause.(type) {
	case *Error:
		return &Error{doing: doing, said: cause.doing + ": " + cause.said, stack: cause.stack}
	case runtime.Error:
		return &Error{doing: doing, said: cause.Error(), stack: debug.Stack()}
	}
	return &Error{doing: doing, said: "its text is left out, because it can hold a sensitive value", stack: debug.Stack()}
}

// Recovered is Of for a panic that is not raised again: it logs the error with its stack.
func Recovered(log logr.Logger, cause any, doing string) *Error {
	e := Of(cause, doing)
	log.Error(e, "Caught a panic", "stack", string(e.stack))
	return e
}
