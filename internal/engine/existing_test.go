package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestPagesByBytes: a page that is too large is requested in smaller ones, and all wanted objects
// are found.
func TestPagesByBytes(t *testing.T) {
	t.Parallel()
	const exist = 100
	annotation, asked := strings.Repeat("a", 250<<10), ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked += r.URL.Query().Get("limit") + " "
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := ""
		if from+limit < exist {
			next = strconv.Itoa(from + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q}, "items": [`, next)
		for i := from; i < min(from+limit, exist); i++ {
			_, _ = io.WriteString(w, strings.Repeat(",", min(i-from, 1))+fmt.Sprintf(`{"metadata": {"name": "%d", "uid": "u%d", "annotations": {"a": %q}}}`, i, i, annotation))
		}
		_, _ = io.WriteString(w, "]}")
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	reflector.BoundPages(config)
	client, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	e := &Engine{Cluster: &cluster.Connection{Metadata: client}, Tracker: tracking.New(apinames.Default)}
	mapping := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	var keys []objects.Key
	for i := range 20 {
		keys = append(keys, keyNamed(strconv.Itoa(i*10)))
	}
	seen, err := e.lookUp(t.Context(), mapping, keys, "")
	if err != nil || len(seen) != exist/10 || asked != "500 50 50 " {
		t.Errorf("%d found by pages of %s: %v", len(seen), asked, err)
	}
}
