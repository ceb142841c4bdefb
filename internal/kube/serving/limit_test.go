package serving_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/kube/serving"
	"lockstep.run/lockstep/test/require"
)

// Connections without a request make place for others; those whose request is being answered stay.
func TestLimit(t *testing.T) {
	t.Parallel()
	const most = 4
	entered, leave := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/slow", serving.Hold(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})))
	for scheme, start := range map[string]func(*httptest.Server){"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS} {
		server := httptest.NewUnstartedServer(mux)
		server.Listener, server.Config.ConnContext = serving.Limit(server.Listener, most), serving.Connected
		start(server)
		t.Cleanup(server.Close)
		client := server.Client()
		client.Timeout = 10 * time.Second
		client.Transport.(*http.Transport).DisableKeepAlives = true
		get := func(path string) int {
			response, err := client.Get(server.URL + path)
			if err != nil {
				return 0
			}
			_ = response.Body.Close()
			return response.StatusCode
		}
		dial := func() net.Conn {
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		answered := make(chan int, most)
		for range most - 1 {
			go func() { answered <- get("/slow") }()
			<-entered
		}
		oldest := dial()
		for range 10 * most {
			dial()
		}
		require.NoError(t, oldest.SetReadDeadline(time.Now().Add(10*time.Second)))
		if _, err := oldest.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection without a request is open: %v", scheme, err)
		}
		require.Equal(t, http.StatusOK, get("/"), fmt.Sprintf("%s: a request along with many connections", scheme))
		go func() { answered <- get("/slow") }()
		<-entered
		require.Equal(t, 0, get("/"), fmt.Sprintf("%s: a connection beyond those that are held", scheme))
		for range most {
			leave <- struct{}{}
		}
		for range most {
			require.Equal(t, http.StatusOK, <-answered, fmt.Sprintf("%s: a request that was being answered", scheme))
		}
		require.Equal(t, http.StatusOK, get("/"), fmt.Sprintf("%s: a request after all", scheme))
	}
}
