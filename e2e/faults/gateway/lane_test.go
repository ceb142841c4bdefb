package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/require"
)

// scripted decides the same for all requests and for the second event of each
// watch.
type scripted struct {
	request, event Decision

	mu     sync.Mutex
	events int
	ended  chan struct{}
}

func (s *scripted) Request(*Request) Decision { return s.request }
func (s *scripted) Answered(*Request, int)    {}
func (s *scripted) Ended(*Request)            { s.ended <- struct{}{} }

func (s *scripted) Event(*Event) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events++; s.events == 2 {
		return s.event
	}
	return Decision{}
}

// server counts its requests, and answers watches with three events.
type server struct {
	mu    sync.Mutex
	count int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.count++
	n := s.count
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
		_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"old"}}]}`)
		return
	}
	if r.URL.Query().Get("watch") != "true" {
		w.WriteHeader(200 + n)
		return
	}
	for _, name := range []string{"a", "b", "c"} {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"namespace":"shop","name":"`+name+`"}}}`+"\n")
	}
}

func (s *server) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// behind returns a client that reaches the server through a lane without a
// manager.
func behind(t *testing.T, to http.Handler, d Director) (*http.Client, string) {
	t.Helper()
	server := httptest.NewServer(to)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	l := &lane{Crew: &Crew{Gateway: &Gateway{}, director: d}, upstream: upstream{target: target, to: server.Client().Transport}, next: map[string]Decision{}}
	l.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: l.to}
	l.server = httptest.NewUnstartedServer(l)
	l.server.EnableHTTP2 = true
	l.server.StartTLS()
	t.Cleanup(l.server.Close)
	return l.server.Client(), l.server.URL + "/api/v1/namespaces/shop/configmaps"
}

func TestFaultsOfRequests(t *testing.T) {
	t.Parallel()
	const while = 300 * time.Millisecond // longer than a busy machine can delay this process
	for name, tc := range map[Fault]struct {
		reason string
		// code is the client's answer, 0 for none; answered and arrived are the server's numbers
		// of requests at that time and at the end.
		code, answered, arrived int
	}{
		None:          {"it is only passed on", 201, 1, 1},
		Drop:          {"it never arrives", 0, 0, 0},
		Late:          {"it arrives when its caller has given up", 0, 0, 1},
		Lose:          {"it takes effect without an answer", 0, 1, 1},
		Delay:         {"it arrives later", 201, 1, 1},
		DelayAnswer:   {"it is answered later", 201, 1, 1},
		RepeatFirst:   {"it arrives twice", 201, 2, 2},
		RepeatSecond:  {"it arrives twice", 202, 2, 2},
		RepeatLate:    {"it arrives again after the answer", 201, 1, 2},
		Conflict:      {"it never arrives", 409, 0, 0},
		TooMany:       {"it never arrives", 429, 0, 0},
		Internal:      {"it never arrives", 500, 0, 0},
		Unavailable:   {"it never arrives", 503, 0, 0},
		ConflictAfter: {"it takes effect", 409, 1, 1},
		InternalAfter: {"it takes effect", 500, 1, 1},
	} {
		t.Run(string("fault "+name), func(t *testing.T) {
			t.Parallel()
			s, d := &server{}, &scripted{request: Decision{Fault: name, For: while}, ended: make(chan struct{}, 1)}
			client, address := behind(t, s, d)
			begun := time.Now()
			code := 0
			answer, err := client.Post(address, "application/json", strings.NewReader(`{"metadata":{"name":"one"}}`))
			if err == nil {
				code = answer.StatusCode
				answer.Body.Close()
			}
			answered, took := s.seen(), time.Since(begun)
			<-d.ended
			if diff := cmp.Diff([]int{tc.code, tc.answered, tc.arrived}, []int{code, answered, s.seen()}); diff != "" {
				t.Errorf("%s: code, requests by then, requests in the end (-want +got):\n%s", tc.reason, diff)
			}
			if (name == Delay || name == DelayAnswer) && took < while {
				t.Errorf("%s: answered after %s", tc.reason, took)
			}
		})
	}
}

func TestFaultsOfWatches(t *testing.T) {
	t.Parallel()
	event := func(name string) string {
		return `{"type":"ADDED","object":{"metadata":{"namespace":"shop","name":"` + name + `"}}}` + "\n"
	}
	all := event("a") + event("b") + event("c")
	gone := event("a") + `{"type":"ERROR","object":` + string(status(http.StatusGone)) + "}\n"
	old := `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old"}}}` + "\n" +
		`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	const list = "&sendInitialEvents=true"
	for name, tc := range map[Fault]struct {
		reason string
		first  string
		// query is the client's next query; code and second are the statuses of the next
		// two answers, 0 for none.
		query  string
		code   int
		second string
	}{
		None:             {"nothing happens", all, "", 200, all},
		Break:            {"the stream ends", event("a"), "", 200, all},
		Half:             {"the stream is cut within an event", event("a") + event("b")[:len(event("b"))/2], "", 200, all},
		Hold:             {"everything is delivered, later", all, "", 200, all},
		Gone:             {"the client has to list", gone, list, 200, all},
		GoneAtStart:      {"the client learns it when it comes back", event("a"), "", 410, ""},
		WatchDrop:        {"the client does not get through", event("a"), "", 0, ""},
		WatchTooMany:     {"the server is busy", event("a"), "", 429, ""},
		WatchInternal:    {"the server fails", event("a"), "", 500, ""},
		WatchUnavailable: {"the server is away", event("a"), "", 503, ""},
		ListDrop:         {"the list does not get through", gone, list, 0, ""},
		ListTooMany:      {"the server is too busy to list", gone, list, 429, ""},
		ListInternal:     {"the list fails", gone, list, 500, ""},
		ListUnavailable:  {"the list is refused", gone, list, 503, ""},
		ListStale:        {"the list is of an earlier version, and all that follows is delivered", gone, list, 200, old + all},
	} {
		t.Run(string("fault "+name), func(t *testing.T) {
			t.Parallel()
			var met atomic.Int32
			d := &scripted{event: Decision{Fault: name, For: 50 * time.Millisecond, Version: "7", Met: func() { met.Add(1) }}, ended: make(chan struct{}, 9)}
			client, address := behind(t, &server{}, d)
			_, first := read(t.Context(), client, address+"?watch=true")
			if n := met.Load(); n != 0 {
				t.Errorf("a list was met %d times before it was requested", n)
			}
			code, second := read(t.Context(), client, address+"?watch=true"+tc.query)
			if code != 200 {
				second = ""
			}
			if diff := cmp.Diff([]any{tc.first, tc.code, tc.second}, []any{first, code, second}); diff != "" {
				t.Errorf("%s: the watch, and the client's events (-want +got):\n%s", tc.reason, diff)
			}
			if n := met.Load(); name.OfLists() && n != 1 {
				t.Errorf("the list was met %d times", n)
			}
		})
	}
}

// read returns the code of an answer, 0 for none, and the received part of its body.
func read(ctx context.Context, client *http.Client, address string) (int, string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err.Error()
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}
