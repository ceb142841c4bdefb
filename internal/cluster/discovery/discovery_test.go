package discovery

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/test/require"
)

// answers of an API server without aggregated discovery, by path. All other paths
// are unavailable.
type answers map[string]string

// RoundTrip answers without a connection.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code, text := http.StatusOK, a[r.URL.Path]
	if text == "" {
		code, text = http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(text)),
	}, nil
}

// old is an API server before Kubernetes 1.26 with one group besides the core.
func old() answers {
	return answers{
		"/version": `{"major":"1","minor":"25"}`,
		"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com",
			"versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]}]}`,
		"/apis/example.com/v1": `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[
			{"name":"things","kind":"Thing","namespaced":true,"verbs":["list","watch"]}]}`,
	}
}

// discover returns a Discovery of a with the kinds in use, and the reported changes.
func discover(t *testing.T, a http.RoundTripper, used ...schema.GroupKind) (*Discovery, *[]schema.GroupKind) {
	t.Helper()
	var changed []schema.GroupKind
	config := &rest.Config{Host: "http://api", Transport: a}
	d, err := New(config, &http.Client{Transport: a}, Options{
		Used:    func() []schema.GroupKind { return used },
		Changed: func(kinds []schema.GroupKind) { changed = append(changed, kinds...) },
	})
	require.NoError(t, err)
	return d, &changed
}

// TestDiscoveryOfOldServersFailsInPart: an API that does not answer might be served, even if each
// API is read separately.
func TestDiscoveryOfOldServersFailsInPart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		down         string
		things, pods string
	}{
		"all answer":         {"", "namespace things/v1", "namespace pods/v1"},
		"one does not":       {"/apis/example.com/v1", "the API example.com/v1 is registered and not available", "namespace pods/v1"},
		"the core does not":  {"/api/v1", "namespace things/v1", "the API v1 is registered and not available"},
		"the list is denied": {"/apis", ErrNotReady.Error(), ErrNotReady.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old()
			delete(a, tc.down)
			f, _ := discover(t, a)
			(&crds{Discovery: f}).known()
			if err := f.readAll(t.Context()); (err != nil) != (tc.down == "/apis") {
				t.Fatal(err)
			}
			for gk, want := range map[schema.GroupKind]string{thingKind: tc.things, {Kind: "Pod"}: tc.pods} {
				if got := show(f.index, gk); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s, want %s", gk, got, want)
				}
			}
		})
	}
}

// TestFailureIsTold: users of a kind that was never read are notified if its API cannot be read,
// and if it is removed. An outage of an API that was read before does not affect them.
func TestFailureIsTold(t *testing.T) {
	t.Parallel()
	down := answers{"/apis/example.com/v1": ""}
	gone := answers{"/apis": `{"kind":"APIGroupList","apiVersion":"v1"}`}
	const served, unknown = "namespace things/v1", "the API example.com/v1 is registered and not available"
	a := old()
	f, told := discover(t, a, thingKind, schema.GroupKind{Kind: "Pod"})
	(&crds{Discovery: f}).known()
	maps.Copy(a, gone)
	require.NoError(t, f.readAll(t.Context()))
	for _, step := range []struct {
		reason string
		apis   answers
		want   string
		told   bool
	}{
		{"it is registered and down", down, unknown, true},
		{"it stays down", down, unknown, false},
		{"it is removed", gone, "not served", true},
		{"it is down before it is read", down, unknown, true},
		{"it comes", nil, served, true},
		{"it is down", down, served, false},
		{"it comes back", nil, served, false},
		{"it is down for the last time", down, served, false},
		{"it is removed for good", gone, "not served", true},
	} {
		maps.Copy(a, old())
		maps.Copy(a, step.apis)
		*told = nil
		f.wantDiscovery.Store(true)
		if complete, err := f.update(t.Context()); !complete || err != nil {
			t.Errorf("%s: discovery is to be read again: %v", step.reason, err)
		}
		if got := show(f.index, thingKind); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %s, want %s", step.reason, got, step.want)
		}
		var want []schema.GroupKind
		if step.told {
			want = append(want, thingKind)
		}
		if !slices.Equal(*told, want) {
			t.Errorf("%s: reported %v, want %v", step.reason, *told, want)
		}
	}
}

func newAPIService() *definition {
	a := &definition{}
	a.Name = "v1.example.com"
	a.Spec.Group, a.Spec.Version, a.Spec.Service = "example.com", "v1", &struct{}{}
	a.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True"}}
	return a
}

// server gives changing answers, and counts the requests for its groups.
type server struct {
	answers atomic.Pointer[answers]
	asked   atomic.Int64
}

func (s *server) set(a answers) { s.answers.Store(&a) }

// RoundTrip answers without a connection.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/apis" {
		s.asked.Add(1)
	}
	return s.answers.Load().RoundTrip(r)
}

// TestDiscoveryIsReadAgain: a requested group is read as soon as there is an answer,
// however long that takes. A group that is not in the answer is looked for a few times.
func TestDiscoveryIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		without := old()
		without["/apis"] = `{"kind":"APIGroupList","apiVersion":"v1"}`
		s.set(without)
		f, _ := discover(t, s, thingKind)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		time.Sleep(time.Minute)

		s.set(answers{})
		f.Reload()
		time.Sleep(time.Hour)
		s.set(without)
		time.Sleep(time.Minute)
		if f.wantDiscovery.Load() {
			t.Error("after a long outage discovery is not read")
		}
		asked := s.asked.Load()
		time.Sleep(time.Hour)
		require.Equal(t, int64(0), s.asked.Load()-asked, "discovery is read")

		apiServices{f}.Changed(newAPIService())
		time.Sleep(time.Hour)
		asked = s.asked.Load() - asked
		require.Equal(t, asked, int64(discoveryAttempts), "what discovery does not list is looked for in")
		stop()
		<-ended
	})
}

// TestRemovedBeforeItAnswered: users of a kind are notified if its APIService is removed that was
// never available, so that discovery has never named it.
func TestRemovedBeforeItAnswered(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(apiServices, *definition){
		"an event": apiServices.Deleted,
		"a list":   func(s apiServices, _ *definition) { s.Listed(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old()
			a["/apis"] = `{"kind":"APIGroupList","apiVersion":"v1"}`
			f, told := discover(t, a, thingKind)
			(&crds{Discovery: f}).known()
			require.NoError(t, f.readAll(t.Context()))
			service := newAPIService()
			service.Status.Conditions = nil
			apiServices{f}.Changed(service)
			if got := show(f.index, thingKind); !strings.Contains(got, ErrUnavailable.Error()) {
				t.Error(got)
			}
			*told = nil
			remove(apiServices{f}, service)
			if !f.wantDiscovery.Load() {
				t.Fatal("discovery is not read again")
			}
			_, err := f.update(t.Context())
			require.NoError(t, err)
			require.Equal(t, []schema.GroupKind{thingKind}, *told)
			require.Equal(t, "not served", show(f.index, thingKind))
		})
	}
}

// TestRestored: the API server can be another one after a broken watch, and is the same after a
// watch that ended in order.
func TestRestored(t *testing.T) {
	t.Parallel()
	const asked = 7 * time.Minute
	for name, tc := range map[string]struct {
		reason string
		// lasted is how long the watch lasted, failed whether the next request failed
		// once.
		lasted time.Duration
		failed bool
		want   int
	}{
		"in order":                   {"it lasted as long as it was needed", asked, false, 0},
		"broken":                     {"the connection was cut, or the API server ended", asked - time.Second, false, 1},
		"in order, then no answer":   {"it was replaced at that very moment", asked, true, 1},
		"a while after it had ended": {"the process was stopped", 2 * asked, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				restored := 0
				c := &crds{Discovery: &Discovery{wake: make(chan struct{}, 1), crdsKnown: make(chan struct{})}}
				connect := func() {
					c.connected(time.Now().Add(asked))
					if c.wantVersion.Swap(false) {
						restored++
					}
				}
				c.Failed(errors.New("not there yet")) // before the first watch
				connect()
				time.Sleep(tc.lasted)
				if tc.failed {
					c.Failed(errors.New("connection refused"))
				}
				for range 2 {
					connect()
					time.Sleep(asked)
				}
				require.Equal(t, tc.want, restored, "restored")
			})
		})
	}
}
