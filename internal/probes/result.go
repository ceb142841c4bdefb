package probes

import (
	"strings"
	"time"
)

// Status is the verdict on an object. The zero value is Unknown.
type Status int8

// The three verdicts.
const (
	// Unknown is that the object does not tell: a field is missing, outdated or
	// malformed, or the evaluation failed.
	Unknown Status = iota
	// False is that the object is known not to be available.
	False
	// True is that the object is available. It alone counts as success.
	True
)

// String returns "Unknown", "False" or "True".
func (s Status) String() string {
	switch s {
	case True:
		return "True"
	case False:
		return "False"
	default:
		return "Unknown"
	}
}

// Result is the verdict of a Set on one object.
type Result struct {
	Status Status
	// Messages say why the status is not True, in the order of the probes: those
	// of the Unknown probes where there is one, else those of the False ones.
	// They never contain values of Secrets.
	Messages []string
	// ConditionFalse means that a condition probe is definitely False, also
	// where another probe makes the status Unknown. During a rollout this counts
	// at once, everything else after the deadline.
	ConditionFalse bool
	// Outdated means that the object's status is of an earlier generation. The result is
	// Unknown then.
	Outdated bool
	// Unseen means that the object was not judged: its watch has not shown yet what
	// the probes read. The status is Unknown then.
	Unseen bool
	// Settling is when the generation of an object changed that had passed its probes;
	// zero where it is not settling. It is set by the caller, who knows earlier results.
	Settling time.Time
}

// Message returns all messages joined with ", ", as in a status.
func (r Result) Message() string { return strings.Join(r.Messages, ", ") }

// outcome is the verdict of one probe.
type outcome struct {
	status    Status
	message   string
	condition bool
	outdated  bool
}

// conjunction combines outcomes by AND.
type conjunction struct {
	unknown, failed []string
	conditionFalse  bool
	outdated        bool
}

func (c *conjunction) add(o outcome) {
	switch o.status {
	case Unknown:
		c.unknown = append(c.unknown, o.message)
		c.outdated = c.outdated || o.outdated
	case False:
		c.failed = append(c.failed, o.message)
		c.conditionFalse = c.conditionFalse || o.condition
	}
}

func (c *conjunction) result() Result {
	switch {
	case len(c.unknown) > 0:
		return Result{Status: Unknown, Messages: c.unknown, ConditionFalse: c.conditionFalse, Outdated: c.outdated}
	case len(c.failed) > 0:
		return Result{Status: False, Messages: c.failed, ConditionFalse: c.conditionFalse}
	default:
		return Result{Status: True}
	}
}
