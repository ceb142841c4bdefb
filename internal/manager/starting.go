package manager

import (
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"lockstep.run/lockstep/internal/limits"
)

// starting repeats reads of what the API server is and serves while the manager
// starts: without an answer it cannot go on, and to end because of one hiccup would
// cost the pause that comes before the next start.
type starting struct {
	next  http.RoundTripper
	until time.Time
}

// patient returns a wrapper of transports that belong to a process which starts now.
func patient() func(http.RoundTripper) http.RoundTripper {
	until := time.Now().Add(limits.StartGrace)
	return func(next http.RoundTripper) http.RoundTripper { return &starting{next: next, until: until} }
}

// RoundTrip sends a request, again where it may be.
func (s *starting) RoundTrip(req *http.Request) (*http.Response, error) {
	pauses := wait.Backoff{Duration: limits.WatchBackoffMin, Cap: limits.ReconnectMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for {
		res, err := s.next.RoundTrip(req)
		if !discovers(req) || !hiccup(res, err) || time.Now().After(s.until) {
			return res, err
		}
		select {
		case <-req.Context().Done():
			return res, err
		case <-time.After(pauses.Step()):
		}
		if err == nil {
			_ = res.Body.Close()
		}
	}
}

// WrappedRoundTripper has client-go find the transport behind this one.
func (s *starting) WrappedRoundTripper() http.RoundTripper { return s.next }

var _ utilnet.RoundTripperWrapper = &starting{}

// discovers reports whether a request asks for the version or for what is served, and
// not for objects.
func discovers(req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	path := strings.Trim(req.URL.Path, "/")
	switch root, rest, _ := strings.Cut(path, "/"); root {
	case "version":
		return rest == ""
	case "api":
		return strings.Count(rest, "/") == 0
	case "apis":
		return strings.Count(rest, "/") <= 1
	}
	return false
}

// hiccup reports whether there was no answer, or one that the same request may not
// get a moment later.
func hiccup(res *http.Response, err error) bool {
	return err != nil || res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError
}
