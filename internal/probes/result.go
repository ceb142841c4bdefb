package probes

import (
	"slices"
	"strings"
	"time"
)

// Status is the result for an object. The zero value is Unknown.
type Status int8

// The three results.
const (
	// Unknown: a field is missing, outdated or malformed, or the evaluation failed.
	Unknown Status = iota
	// False: all fields could be read, and at least one check failed.
	False
	// True: all checks passed, or no entry selects the object.
	True
)

// String returns "Unknown", "False" or "True".
func (s Status) String() string { return [...]string{"Unknown", "False", "True"}[s] }

// Result is the result of all probes on one object.
type Result struct {
	Status Status
	// Messages are the messages of the Unknown probes in order, or else of the False ones. They
	// contain no values of Secrets.
	Messages []string
	// ConditionFalse is set if a condition is False, which takes effect at once during a rollout.
	ConditionFalse bool
	// Outdated is set if the status describes an earlier generation. The result is then Unknown.
	Outdated bool
	// Unseen is set if the watch has not yet delivered the fields that the probes read. The result
	// is then Unknown.
	Unseen bool
	// GraceSince is when the readiness grace started. An available object gets it if its generation
	// changes. The caller sets it.
	GraceSince time.Time
}

// Message returns all messages joined with ", ", in the form that a status shows.
func (r Result) Message() string { return strings.Join(r.Messages, ", ") }

// outcome is the result of one probe. condition and outdated become ConditionFalse and Outdated of
// the [Result].
type outcome struct {
	status    Status
	message   string
	condition bool
	outdated  bool
}

// conjunction combines outcomes. It keeps the messages of Unknown and False apart, because only the
// more severe ones are shown.
type conjunction struct {
	unknown, failed          []string
	conditionFalse, outdated bool
}

func (c *conjunction) add(o outcome) {
	switch o.status {
	case Unknown:
		c.unknown = added(c.unknown, o.message)
		c.outdated = c.outdated || o.outdated
	case False:
		c.failed = added(c.failed, o.message)
		c.conditionFalse = c.conditionFalse || o.condition
	}
}

// added appends a message unless the list has it, because several probes can miss the same field.
func added(messages []string, message string) []string {
	if slices.Contains(messages, message) {
		return messages
	}
	return append(messages, message)
}

// result keeps ConditionFalse in an Unknown result: a False condition takes effect at once, even if
// another probe cannot be read yet.
func (c *conjunction) result() Result {
	switch {
	case len(c.unknown) > 0:
		return Result{Status: Unknown, Messages: c.unknown, ConditionFalse: c.conditionFalse, Outdated: c.outdated}
	case len(c.failed) > 0:
		return Result{Status: False, Messages: c.failed, ConditionFalse: c.conditionFalse}
	}
	return Result{Status: True}
}
