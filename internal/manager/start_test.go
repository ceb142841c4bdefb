package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/kube/leadership"
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

// A process that starts while the API server does not answer is alive, not ready, and continues
// once it answers.
func TestAwaitServer(t *testing.T) {
	t.Parallel()
	probes := freeAddress(t)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked++; asked {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusInternalServerError} {
				res, err := http.Get("http://" + probes + path)
				if err != nil {
					t.Errorf("%s of a process that waits: %v", path, err)
					continue
				}
				_ = res.Body.Close()
				require.Equal(t, want, res.StatusCode, fmt.Sprintf("%s of a process that waits answers", path))
			}
			w.WriteHeader(http.StatusForbidden) // its roles are not loaded yet
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.0"}`))
		}
	}))
	defer server.Close()
	version, err := awaitServer(t.Context(), &Config{ProbeAddress: probes}, &rest.Config{Host: server.URL}, logr.Discard())
	require.NoError(t, err)
	if version != "v1.36.0" || asked != 3 {
		t.Errorf("version %q after %d requests", version, asked)
	}
	listener, err := net.Listen("tcp", probes)
	require.NoError(t, err) // the manager listens there next
	_ = listener.Close()
}

// A process that is stopped while it waits ends.
func TestAwaitServerIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		stop(stopped)
	}))
	defer server.Close()
	if _, err := awaitServer(ctx, &Config{ProbeAddress: "0"}, &rest.Config{Host: server.URL}, logr.Discard()); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// TestNothingIsWrittenWithoutTheLease: every client of the manager asks the guard of the Lease
// before each write: controller-runtime's clients, and the clients made from the returned
// configuration (invariant 3).
func TestNothingIsWrittenWithoutTheLease(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the API server got %s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	mgr, config, err := newManager(&Config{
		Namespace: "n", LeaderElect: true, MetricsAddress: "0", ProbeAddress: "0", PprofAddress: "0",
	}, &rest.Config{Host: server.URL}, logr.Discard(), func(error) {})
	require.NoError(t, err)
	ours, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	for name, client := range map[string]*http.Client{"controller-runtime's": mgr.GetHTTPClient(), "our own": ours} {
		if res, err := client.Get(server.URL); err != nil {
			t.Errorf("%s client cannot read: %v", name, err)
		} else {
			_ = res.Body.Close()
		}
		res, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
		if !errors.Is(err, leadership.ErrNotLeading) {
			t.Errorf("%s client wrote without the Lease: %v", name, err)
		}
		if err == nil {
			_ = res.Body.Close()
		}
	}
}
