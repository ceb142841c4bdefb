package manager

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep.run/lockstep/test/require"
)

// answers is a transport that fails a number of times, in one way.
type answers struct {
	failures int
	code     int // 0 means no answer
	asked    int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	code := http.StatusOK
	if a.asked <= a.failures {
		if code = a.code; code == 0 {
			return nil, errors.New("connection reset")
		}
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestStartTransport(t *testing.T) {
	t.Parallel()
	const always = 1 << 30
	for name, tc := range map[string]struct {
		reason   string
		path     string
		failures int
		code     int
		later    time.Duration
		asked    int // 0 is more than once
		want     int
	}{
		"version":        {reason: "a dropped request", path: "/version", failures: 2, asked: 3, want: 200},
		"groups":         {reason: "the API server is starting", path: "/apis", failures: 1, code: 500, asked: 2, want: 200},
		"core":           {reason: "it is busy", path: "/api", failures: 1, code: 429, asked: 2, want: 200},
		"group version":  {reason: "also the resources of one", path: "/apis/apps/v1", failures: 1, code: 503, asked: 2, want: 200},
		"forbidden":      {reason: "the right has to be granted", path: "/version", failures: 1, code: 403, asked: 1, want: 403},
		"objects":        {reason: "readers of objects handle it", path: "/api/v1/pods", failures: 1, code: 500, asked: 1, want: 500},
		"custom objects": {reason: "the same", path: "/apis/apps/v1/deployments", failures: 1, code: 500, asked: 1, want: 500},
		"later":          {reason: "the manager has started long ago", path: "/version", failures: 1, code: 500, later: time.Hour, asked: 1, want: 500},
		"down":           {reason: "it has to be reported at some time", path: "/version", failures: always, code: 503, want: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &answers{failures: tc.failures, code: tc.code}
				transport := retryDiscovery()(server)
				time.Sleep(tc.later)
				begun := time.Now()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://h"+tc.path, nil)
				require.NoError(t, err)
				res, err := transport.RoundTrip(req)
				require.NoError(t, err)
				defer res.Body.Close()
				if res.StatusCode != tc.want || tc.asked != 0 && server.asked != tc.asked || tc.asked == 0 && server.asked < 2 {
					t.Errorf("asked %d times, answer %d, want %d and %d: %s", server.asked, res.StatusCode, tc.asked, tc.want, tc.reason)
				}
				if took := time.Since(begun); took > startGrace+2*reconnectMax {
					t.Errorf("gave up after %s", took)
				}
			})
		})
	}
}
