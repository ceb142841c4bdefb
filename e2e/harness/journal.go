package harness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Journal is what the manager requests of the API server from a point on.
type Journal struct {
	*sandbox.Audit
	From sandbox.Position
}

// Journal begins one.
func (e *Env) Journal(tb testing.TB) *Journal {
	tb.Helper()
	audit, err := e.Audit()
	must(tb, err)
	from, err := audit.Mark(tb.Context())
	must(tb, err)
	return &Journal{audit, from}
}

// Quiet waits until the manager has sent nothing about a namespace for a while, and
// returns its requests there since the beginning, watches apart.
func (j *Journal) Quiet(tb testing.TB, namespace string, long time.Duration) []sandbox.Entry {
	tb.Helper()
	filters := []sandbox.Filter{
		sandbox.ByUser(ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")),
		func(e sandbox.Entry) bool { return e.Object.Namespace == namespace },
	}
	_, err := j.Settled(tb.Context(), j.From, long, filters...)
	must(tb, err)
	entries, err := j.Since(tb.Context(), j.From, filters...)
	must(tb, err)
	return entries
}

// Rest is Quiet for longer than statuses are held back.
func (j *Journal) Rest(tb testing.TB, namespace string) []sandbox.Entry {
	tb.Helper()
	return j.Quiet(tb, namespace, 2*time.Second)
}

// Tally counts requests by "verb resource/subresource".
func Tally(entries []sandbox.Entry) map[string]int {
	counts := map[string]int{}
	for _, e := range entries {
		counts[strings.TrimSuffix(e.Verb+" "+e.Object.Resource+"/"+e.Object.Subresource, "/")]++
	}
	return counts
}

// Lines shows requests in a failure.
func Lines(entries []sandbox.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "\n  %s %s (%d)", e.Verb, e.RequestURI, e.Code)
	}
	return b.String()
}
