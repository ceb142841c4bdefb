package main

import (
	"errors"
	"slices"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// count is what one user asked of the API server. Every request is in exactly
// one of Reads, Lists, DryRuns, Writes, Statuses and Events, the sum of which is
// Requests, or in one of Watches and Leases, which are kept apart.
type count struct {
	Requests int `json:"requests"`

	Reads    int `json:"reads"`
	Lists    int `json:"lists"`
	DryRuns  int `json:"dryRuns"`
	Writes   int `json:"writes"`
	Statuses int `json:"statuses"`
	Events   int `json:"events"`

	// Refused of the requests were answered with 400 or more.
	Refused int `json:"refused"`

	Watches int `json:"watches"`
	Leases  int `json:"leases"`
}

// tally counts the requests of one user.
func tally(entries []sandbox.Entry, user string) count {
	var c count
	for _, e := range entries {
		if e.User != user {
			continue
		}
		switch {
		case e.Verb == "watch":
			c.Watches++
			continue
		case e.Object.Resource == "leases":
			c.Leases++
			continue
		case e.Verb == "list":
			c.Lists++
		case e.DryRun:
			c.DryRuns++
		case slices.Contains([]string{"get", "head", "options"}, e.Verb):
			c.Reads++
		case e.Object.Resource == "events":
			c.Events++
		case e.Object.Subresource == "status":
			c.Statuses++
		default:
			c.Writes++
		}
		c.Requests++
		if e.Code >= 400 {
			c.Refused++
		}
	}
	return c
}

var (
	errNoCause  = errors.New("the cause is not in the audit log")
	errNoEffect = errors.New("the effect is not in the audit log")
)

// span is the time from the arrival of the first request that is a cause to the
// end of the last one that is an effect.
func span(entries []sandbox.Entry, cause, effect sandbox.Filter) (time.Duration, error) {
	var start, end time.Time
	for _, e := range entries {
		if cause(e) && (start.IsZero() || e.Received.Before(start)) {
			start = e.Received
		}
		if effect(e) && e.Done.After(end) {
			end = e.Done
		}
	}
	if start.IsZero() {
		return 0, errNoCause
	}
	if end.Before(start) {
		return 0, errNoEffect
	}
	return end.Sub(start), nil
}

// all accepts what every filter accepts.
func all(filters ...sandbox.Filter) sandbox.Filter {
	return func(e sandbox.Entry) bool {
		return !slices.ContainsFunc(filters, func(f sandbox.Filter) bool { return !f(e) })
	}
}

// named accepts requests about the object of a name, a subresource included only
// where it is the given one.
func named(name, subresource string) sandbox.Filter {
	return func(e sandbox.Entry) bool { return e.Object.Name == name && e.Object.Subresource == subresource }
}

// succeeded accepts requests that the API server did not refuse.
func succeeded(e sandbox.Entry) bool { return e.Code < 400 }

// knownBy accepts requests about the objects of which the effect was seen at the
// given times, as far as they had arrived by then: a later one cannot have caused
// what was seen.
func knownBy(seen map[string]time.Time) sandbox.Filter {
	return func(e sandbox.Entry) bool {
		at, ok := seen[e.Object.Name]
		return ok && !e.Received.After(at)
	}
}

// median of at least one duration.
func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
