package livestate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestPending: a kind is pending while it is listed for the first time. If the API server does not
// answer, that ends with a call of KindChanged, because owners wait for it.
func TestPending(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"/version": `{"gitVersion": "v1.34.0"}`,
		"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1":  `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["list", "watch"]}]}`,
		"/apis":    `{"kind": "APIGroupList", "groups": []}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/configmaps") {
			<-req.Context().Done()
			return
		}
		answer, ok := answers[req.URL.Path]
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)

	kind := schema.GroupKind{Kind: "ConfigMap"}
	var c *Cache
	pending := make(chan bool, 10)
	c, err := New(Options{
		Names: apinames.Default, Config: &rest.Config{Host: server.URL}, Pending: 2 * time.Second,
		Observe: func(objects.Key, *unstructured.Unstructured) *objects.Observed { return nil },
		Changed: func(...objects.Change) {}, KindChanged: func(schema.GroupKind) { pending <- c.State(kind).Pending },
	})
	require.NoError(t, err)
	c.Use("test", []schema.GroupKind{kind})
	if c.State(kind).Pending {
		t.Error("it is pending before any request")
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Start(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	began := time.Now()
	for !<-pending {
	}
	for <-pending {
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was pending for %s", took)
	}
}
