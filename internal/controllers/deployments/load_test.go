package deployments

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/livestate"
	"lockstep.run/lockstep/internal/objects"
)

var thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}

// TestScopeIsThatOfTheMapping: that a kind is served, and its scope, is one answer. An
// API server that says something else of another version shows where it comes from.
func TestScopeIsThatOfTheMapping(t *testing.T) {
	t.Parallel()
	r := &Reconciler{Live: liveOf(t, map[string]string{
		"/version": `{"gitVersion": "v1.34.0"}`,
		"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1":  `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
		"/apis": `{"kind": "APIGroupList", "groups": [{"name": "example.com", "preferredVersion": {"groupVersion": "example.com/v2", "version": "v2"},
			"versions": [{"groupVersion": "example.com/v2", "version": "v2"}, {"groupVersion": "example.com/v1", "version": "v1"}]}]}`,
		"/apis/example.com/v1": `{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [{"name": "things", "kind": "Thing", "namespaced": true}]}`,
		"/apis/example.com/v2": `{"kind": "APIResourceList", "groupVersion": "example.com/v2", "resources": [{"name": "things", "kind": "Thing", "namespaced": false}]}`,
	})}
	for version, want := range map[string]struct{ namespaced, known bool }{
		"v1": {true, true}, "v2": {false, true}, "": {false, true}, "v3": {false, false},
	} {
		namespaced, known := r.namespaced(thing, version)
		if namespaced != want.namespaced || known != want.known {
			t.Errorf("version %q: namespaced: %t, known: %t, want %+v", version, namespaced, known, want)
		}
	}
}

// liveOf returns what is known of an API server that gives these answers, as soon as
// it is known of things.
func liveOf(t *testing.T, answers map[string]string) *livestate.Cache {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer, ok := answers[req.URL.Path]
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	changed := make(chan struct{}, 1)
	live := unstarted(t, server.URL, func(schema.GroupKind) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	live.Use("test", []schema.GroupKind{thing})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = live.Start(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	for known := false; !known; {
		<-changed
		_, err := live.Mapping(thing, "")
		known = err == nil
	}
	return live
}

// unstarted returns what knows of no kind yet whether it is served.
func unstarted(t *testing.T, host string, changed func(schema.GroupKind)) *livestate.Cache {
	t.Helper()
	live, err := livestate.New(livestate.Options{
		Config:  &rest.Config{Host: host},
		Observe: func(objects.Key, *unstructured.Unstructured) *objects.Observed { return nil },
		Changed: func(objects.Key, *objects.Observed) {}, KindChanged: changed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return live
}
