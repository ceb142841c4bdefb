package leadership

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"lockstep.run/lockstep/internal/limits"
)

// ErrNotLeading is the cause of the error if a Guard refused a request. The request was not sent.
var ErrNotLeading = errors.New("not sent: this manager does not hold the leader lease, or could not renew it in time")

// ErrRestored ends the process if the cluster went back to an earlier state: its caches can hold
// states that never happened.
var ErrRestored = errors.New("the leader lease holds an earlier state than before: the cluster was restored from a backup, and everything has to be read again")

// Guard reports whether this process is allowed to write.
type Guard struct {
	clock  clock.PassiveClock
	always bool
	// renewed is when the last successful acquire or renewal was sent; nil while
	// this process does not lead.
	renewed atomic.Pointer[time.Time]
}

// NewGuard returns a Guard that is invalid until its lock is acquired.
func NewGuard(c clock.PassiveClock) *Guard {
	return &Guard{clock: c}
}

// Always returns the Guard of a manager without leader election.
func Always() *Guard {
	return &Guard{always: true}
}

// Valid reports whether the last successful renewal is younger than the renew
// deadline.
func (g *Guard) Valid() bool {
	if g.always {
		return true
	}
	at := g.renewed.Load()
	if at == nil {
		return false
	}
	// The longer one of monotonic and wall clock time.
	now := g.clock.Now()
	return max(now.Sub(*at), now.Round(0).Sub(at.Round(0))) < limits.LeaseRenewDeadline
}

func (g *Guard) renew(sent time.Time) { g.renewed.Store(&sent) }

func (g *Guard) drop() { g.renewed.Store(nil) }

// WrapTransport returns a transport that lets reads (GET, HEAD, OPTIONS) pass
// and refuses any other request with ErrNotLeading while the Guard is not
// valid. It suits rest.Config.Wrap: client-go calls it after everything else,
// directly before the request is sent. Clients that a standby needs for
// requests that write nothing (TokenReview, SubjectAccessReview) take a
// configuration without it.
func (g *Guard) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return &transport{guard: g, next: next}
}

type transport struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip sends the request if it is allowed.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	reads := slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodOptions}, req.Method)
	if reads || t.guard.Valid() {
		return t.next.RoundTrip(req)
	}
	if req.Body != nil {
		// A RoundTripper closes the body also when it fails.
		_ = req.Body.Close()
	}
	return nil, ErrNotLeading
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
