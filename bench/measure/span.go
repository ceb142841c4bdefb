package measure

import (
	"errors"
	"slices"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

var (
	errNoCause  = errors.New("the cause is not in the audit log")
	errNoEffect = errors.New("the effect is not in the audit log")
)

// Span is the time between a cause and its effect.
type Span struct {
	Start, End time.Time
}

// Took is the length of the span.
func (s Span) Took() time.Duration { return s.End.Sub(s.Start) }

// span returns the time from the arrival of the first cause to the end of the last effect.
func span(entries []sandbox.Entry, cause, effect sandbox.Filter) (Span, error) {
	var s Span
	for _, e := range entries {
		if cause(e) && (s.Start.IsZero() || e.Received.Before(s.Start)) {
			s.Start = e.Received
		}
		if effect(e) && e.Done.After(s.End) {
			s.End = e.Done
		}
	}

	if s.Start.IsZero() {
		return Span{}, errNoCause
	}
	if s.End.Before(s.Start) {
		return Span{}, errNoEffect
	}

	return s, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

var (
	byAdmin   = sandbox.ByUser(sandbox.AdminUser)
	byManager = sandbox.ByUser(harness.ManagerUser())
)

// ordinary accepts the requests that count: neither watches nor requests about the Lease.
func ordinary(e sandbox.Entry) bool { return e.Verb != "watch" && e.Object.Resource != "leases" }

// writeOf accepts the manager's successful writes of one resource.
func writeOf(resource string, more ...sandbox.Filter) sandbox.Filter {
	return all(byManager, sandbox.ByResource(resource), sandbox.Writes(), succeeded, all(more...))
}

// all accepts entries that every filter accepts.
func all(filters ...sandbox.Filter) sandbox.Filter {
	return func(e sandbox.Entry) bool {
		return !slices.ContainsFunc(filters, func(f sandbox.Filter) bool { return !f(e) })
	}
}

// named accepts requests about the object with a name and the given subresource.
func named(name, subresource string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Name == name && e.Object.Subresource == subresource }
}

// inNamespace accepts requests about a namespace.
func inNamespace(name string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Namespace == name }
}

// statusOf accepts requests about a status.
func statusOf(e sandbox.Entry) bool { return e.Object.Subresource == "status" }

// succeeded accepts requests that the API server did not refuse.
func succeeded(e sandbox.Entry) bool { return e.Code < 400 }

// knownBy accepts requests that arrived before the effect on their object was seen. Later ones
// cannot have caused it.
func knownBy(seen map[string]time.Time) sandbox.Filter {
	return func(e sandbox.Entry) bool {
		at, ok := seen[e.Object.Name]
		return ok && !e.Received.After(at)
	}
}
