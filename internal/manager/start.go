package manager

import (
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"lockstep.run/lockstep/internal/limits"
)

const startGrace = 15 * time.Second // during which discovery is retried at the start

// startTransport retries discovery while the manager starts: to exit on a transient error
// costs the backoff of the container.
type startTransport struct {
	next  http.RoundTripper
	until time.Time
}

// retryDiscovery returns a wrapper of the transports of a process that starts now.
func retryDiscovery() func(http.RoundTripper) http.RoundTripper {
	until := time.Now().Add(startGrace)
	return func(next http.RoundTripper) http.RoundTripper { return &startTransport{next: next, until: until} }
}

// RoundTrip sends a request, and retries discovery.
func (s *startTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	delays := wait.Backoff{Duration: limits.WatchBackoffMin, Cap: reconnectMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for {
		res, err := s.next.RoundTrip(req)
		isTransient := err != nil || res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError
		if !discovers(req) || !isTransient || time.Now().After(s.until) {
			return res, err
		}
		select {
		case <-req.Context().Done():
			return res, err
		case <-time.After(delays.Step()):
		}
		if err == nil {
			_ = res.Body.Close()
		}
	}
}

// WrappedRoundTripper returns the transport for client-go.
func (s *startTransport) WrappedRoundTripper() http.RoundTripper { return s.next }

var _ utilnet.RoundTripperWrapper = &startTransport{}

// discovers reports whether a request reads the version or the served kinds.
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
