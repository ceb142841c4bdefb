package invariants

import (
	"strings"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Rest judges invariant 5 at rest: the manager made no requests other than watches and requests
// about its own Lease.
func Rest(step, manager string, entries []sandbox.Entry) []Violation {
	return none(step, "although nothing was to do", entries, func(e sandbox.Entry) bool { return e.User == manager && counted(e) })
}

// Restart judges invariant 5 over the start of a manager after everything converged: it made no
// writes. Dry runs are allowed.
func Restart(step, manager string, entries []sandbox.Entry) []Violation {
	return none(step, "after a restart with everything in place", entries, func(e sandbox.Entry) bool {
		return e.User == manager && counted(e) && sandbox.Writes()(e) && !review(e)
	})
}

func none(step, when string, entries []sandbox.Entry, wrong func(sandbox.Entry) bool) []Violation {
	var found []Violation
	for _, e := range entries {
		if wrong(e) {
			found = append(found, Step{Name: step}.violation(5, "%s %s answered %d, %s", e.Verb, e.RequestURI, e.Code, when))
		}
	}
	return found
}

func counted(e sandbox.Entry) bool { return e.Verb != "watch" && e.Object.Resource != "leases" }

// review reports whether a request only asks the API server about rights.
func review(e sandbox.Entry) bool {
	return strings.HasSuffix(e.Object.Group, ".k8s.io") && strings.HasSuffix(e.Object.Resource, "reviews")
}
