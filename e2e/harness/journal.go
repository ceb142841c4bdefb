package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Journal reads the manager's requests to the API server from a point on.
type Journal struct {
	*sandbox.Audit
	From sandbox.Position
}

// Journal returns a journal of the requests from now on.
func (e *Env) Journal(tb testing.TB) *Journal {
	tb.Helper()
	audit, err := e.Audit()
	require.NoError(tb, err)
	from, err := audit.Mark(tb.Context())
	require.NoError(tb, err)
	return &Journal{audit, from}
}

// Requests returns the manager's requests about a namespace since the start, except watches.
func (j *Journal) Requests(tb testing.TB, namespace string, filters ...sandbox.Filter) []sandbox.Entry {
	tb.Helper()
	entries, err := j.Since(tb.Context(), j.From, append(about(namespace), filters...)...)
	require.NoError(tb, err)
	return entries
}

// Await is Requests, but waits for at least one: the effect of a request can be visible before
// the request has ended and is logged.
func (j *Journal) Await(tb testing.TB, namespace string, filters ...sandbox.Filter) (entries []sandbox.Entry) {
	tb.Helper()
	Eventually(tb, Patience, "a request to be logged", func(context.Context) error {
		if entries = j.Requests(tb, namespace, filters...); len(entries) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return entries
}

// Rest waits until the manager has sent no request about the namespaces for 2 s, which is
// longer than it holds statuses back. It returns the requests since the start, except watches.
func (j *Journal) Rest(tb testing.TB, namespaces ...string) []sandbox.Entry {
	tb.Helper()
	_, err := j.Settled(tb.Context(), j.From, 2*time.Second, about(namespaces...)...)
	require.NoError(tb, err)
	entries, err := j.Since(tb.Context(), j.From, about(namespaces...)...)
	require.NoError(tb, err)
	return entries
}

// Silent fails the test if the manager has sent requests about the namespaces.
func (j *Journal) Silent(tb testing.TB, namespaces ...string) {
	tb.Helper()
	if entries := j.Rest(tb, namespaces...); len(entries) > 0 {
		tb.Errorf("at rest:%s", Lines(entries))
	}
}

// Settle waits until the manager is quiescent: it has sent no request about the
// namespaces for 2 s.
func (e *Env) Settle(tb testing.TB, namespaces ...string) {
	tb.Helper()
	e.Journal(tb).Rest(tb, namespaces...)
}

// about selects the manager's requests about namespaces, except watches.
func about(namespaces ...string) []sandbox.Filter {
	return []sandbox.Filter{
		sandbox.ByUser(ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")),
		func(e sandbox.Entry) bool { return slices.Contains(namespaces, e.Object.Namespace) },
	}
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
