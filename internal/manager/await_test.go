package manager

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/test/require"
)

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
				if res.StatusCode != want {
					t.Errorf("%s of a process that waits answers %d, want %d", path, res.StatusCode, want)
				}
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
