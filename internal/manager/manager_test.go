package manager

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/test/require"
)

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
