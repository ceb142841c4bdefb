package manager

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"lockstep.run/lockstep/test/require"
)

const (
	attackers    = 200
	mayGrow      = 8 << 20 // bytes of the heap
	answerWithin = time.Second
)

// attack sends a request from many clients, which stay connected, and returns by how much the heap
// grew.
func attack(t *testing.T, dial func() (net.Conn, error), request string) int64 {
	t.Helper()
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	var all sync.WaitGroup
	for range attackers {
		all.Go(func() {
			c, err := dial()
			if err != nil {
				return // refused
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(c, request)
		})
	}
	all.Wait()
	grown := live() - before
	t.Logf("the heap grew by %d KiB", grown>>10)
	return grown
}

// headers are so many KiB of them, without an end.
func headers(path string, size int) string {
	var b strings.Builder
	b.WriteString("GET " + path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n")
	for i := range size / 8 {
		fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("a", 8<<10-10))
	}
	return b.String()
}

// started starts the server of a port.
func started(t *testing.T, port *ctrlmanager.Server, err error) string {
	t.Helper()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = port.Start(ctx) })
	t.Cleanup(func() { stop(); served.Wait() })
	return port.Listener.Addr().String()
}

// Clients of the port of probes hold little memory, and no place that the kubelet needs.
func TestHealthIsBounded(t *testing.T) {
	p, err := newProbed(nil, "0")
	require.NoError(t, err)
	port, err := newPort("health probe", "127.0.0.1:0", p.probes())
	address := started(t, port, err)
	dial := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(t.Context(), "tcp", address) }
	for size, request := range map[int]string{900: headers("/healthz", 900), 0: headers("/healthz", 0)} {
		if grown := attack(t, dial, request); grown > mayGrow {
			t.Errorf("%d KiB of headers: the heap grew by %d KiB", size, grown>>10)
		}
		begin := time.Now()
		response, err := (&http.Client{Timeout: 10 * answerWithin}).Get("http://" + address + "/healthz")
		require.NoError(t, err)
		_ = response.Body.Close()
		if took := time.Since(begin); response.StatusCode != http.StatusOK || took > answerWithin {
			t.Errorf("%d KiB of headers: the kubelet gets %d after %s", size, response.StatusCode, took)
		}
	}
}

// Clients of the port of metrics hold little memory, also with complete requests. Clients with the
// right to get metrics get them.
func TestMetricsAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"status": map[string]any{"allowed": true}}
		if strings.Contains(r.URL.Path, "tokenreviews") {
			review := &authenticationv1.TokenReview{}
			_ = json.NewDecoder(r.Body).Decode(review)
			answer["status"] = map[string]any{"authenticated": review.Spec.Token == "right", "user": map[string]any{"username": "prometheus"}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	port, err := newMetrics(&Config{MetricsAddress: "127.0.0.1:0", MetricsSecure: true}, &rest.Config{Host: server.URL}, logr.Discard())
	address := started(t, port, err)
	insecure := &tls.Config{InsecureSkipVerify: true}
	dial := func() (net.Conn, error) {
		return (&tls.Dialer{Config: insecure}).DialContext(t.Context(), "tcp", address)
	}
	for what, request := range map[string]string{"headers without end": headers("/metrics", 900), "a large request": headers("/metrics", 900) + "\r\n", "a request": headers("/metrics", 0) + "\r\n"} {
		if grown := attack(t, dial, request); grown > mayGrow {
			t.Errorf("%s: the heap grew by %d KiB", what, grown>>10)
		}
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: insecure}}
	for token, want := range map[string]bool{"right": true, "wrong": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		require.NoError(t, err)
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		_ = response.Body.Close()
		if got := response.StatusCode == http.StatusOK; got != want || strings.Contains(string(body), "go_goroutines") != want {
			t.Errorf("%s token: %d", token, response.StatusCode)
		}
	}
}
