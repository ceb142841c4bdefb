package measure

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Count counts one user's requests to the API server, without watches and the user's Lease. Every
// request is in exactly one of Reads, Lists, DryRuns, Writes, Statuses and Events; Requests is
// their sum.
type Count struct {
	Requests                                        int
	Reads, Lists, DryRuns, Writes, Statuses, Events int
	// Refused counts the requests that were answered with 400 or more.
	Refused int
}

// Changes is the number of requests that change something: writes, statuses and events.
func (c Count) Changes() int { return c.Writes + c.Statuses + c.Events }

// Tally counts the requests of one user.
func Tally(entries []sandbox.Entry, user string) Count {
	var c Count
	for _, e := range entries {
		if e.User != user || !ordinary(e) {
			continue
		}
		switch {
		case e.Verb == "list":
			c.Lists++
		case e.DryRun:
			c.DryRuns++
		case slices.Contains([]string{"get", "head", "options"}, e.Verb), e.Object.Group == authorizationv1.GroupName: // a review stores no object
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
