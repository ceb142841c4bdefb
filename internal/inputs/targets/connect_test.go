package targets

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestConnect checks the connections of users, and their errors.
func TestConnect(t *testing.T) {
	t.Parallel()
	s := newServer(t, "there")
	config, id, err := Connect(t.Context(), s.kubeconfig())
	if err != nil || id != "there" {
		t.Fatalf("connected to %q: %v", id, err)
	}
	if config.BearerToken != "" || len(config.KeyData) > 0 {
		t.Error("the configuration has credentials, which its transport has")
	}

	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/version", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := config.Transport.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}

	if err := get(); err != nil {
		t.Error(err)
	}

	s.Close()
	if err := get(); !IsAway(err) || strings.Contains(err.Error(), secretToken) {
		t.Errorf("a server that has ended: %v", err)
	}
	if _, _, err := Connect(t.Context(), s.kubeconfig()); !IsAway(err) || strings.Contains(err.Error(), secretToken) {
		t.Errorf("without a server: %v", err)
	}
	if _, _, err := Connect(t.Context(), []byte("{")); !errors.As(err, new(*RefusedError)) {
		t.Errorf("no kubeconfig: %v", err)
	}
}
