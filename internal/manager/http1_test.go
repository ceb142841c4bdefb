package manager

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestHTTP1Config sends two requests at once, three times: they use two connections of HTTP/1.1,
// and a plain client's requests use one of HTTP/2.
func TestHTTP1Config(t *testing.T) {
	for name, tc := range map[string]struct {
		of          func(*rest.Config) *rest.Config
		protocol    string
		connections int
	}{
		"one each": {http1Config, "HTTP/1.1", 2},
		"plain":    {rest.CopyConfig, "HTTP/2.0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				mu                     sync.Mutex
				connections, protocols = map[string]bool{}, map[string]bool{}
				pair                   sync.WaitGroup
			)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				connections[r.RemoteAddr], protocols[r.Proto] = true, true
				mu.Unlock()
				pair.Done()
				pair.Wait()
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}}`))
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			client, err := kubernetes.NewForConfig(tc.of(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}))
			require.NoError(t, err)
			for range 3 {
				pair.Add(2)
				var answers sync.WaitGroup
				for range 2 {
					answers.Go(func() {
						if _, err := client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
							t.Error(err)
						}
					})
				}
				answers.Wait()
			}
			require.Equal(t, map[string]bool{tc.protocol: true}, protocols, "protocols")
			require.Equal(t, tc.connections, len(connections), "connections")
		})
	}
}

// TestCloseIdle closes the idle connections of the manager's own client and of the one for objects,
// and both continue to work.
func TestCloseIdle(t *testing.T) {
	var (
		mu     sync.Mutex
		open   = map[net.Conn]bool{}
		closed = make(chan struct{}, 10)
	)
	connections := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(open)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "HTTP/1.1", r.Proto, fmt.Sprintf("%s %s came over", r.Method, r.URL))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"b"}}`))
	}))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			open[c] = true
		case http.StateClosed:
			delete(open, c)
			closed <- struct{}{}
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	mgr, guarded, err := newManager(&Config{
		Namespace: "n", LeaderElect: true, MetricsAddress: "0", ProbeAddress: "0", PprofAddress: "0",
	}, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, logr.Discard(), func(error) {})
	require.NoError(t, err)
	writer, err := apply.NewWriter(http1Config(guarded), apinames.Default.FieldManager)
	require.NoError(t, err)
	namespaces := &meta.RESTMapping{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"),
		Resource:         corev1.SchemeGroupVersion.WithResource("namespaces"), Scope: meta.RESTScopeRoot,
	}
	for range 2 {
		res, err := mgr.GetHTTPClient().Get(server.URL)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if _, err := writer.Get(t.Context(), namespaces, "", "a"); err != nil {
			t.Fatal(err)
		}
		if n := connections(); n != 2 {
			t.Fatalf("%d connections while they can be reused, want 2", n)
		}
		closeIdle(mgr, writer)
		for range 2 {
			select {
			case <-closed:
			case <-time.After(time.Minute):
				t.Fatalf("%d connections are open, want none", connections())
			}
		}
	}
}
