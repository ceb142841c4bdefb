package apply

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestResponsesAreBounded: an answer of any length takes at most as much memory as the limit, and
// the error names the limit (invariant 9).
func TestResponsesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 2 * limits.ResponseBytes
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object"},"data":{"value":"`)
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 'x'
		}
		for ; sent < most && r.Context().Err() == nil; sent += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}}`)
	}))
	writer, err := NewWriter(&rest.Config{Host: server.URL}, apinames.Default.FieldManager)
	require.NoError(t, err)
	mapping := &meta.RESTMapping{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Scope: meta.RESTScopeNamespace,
	}
	_, err = writer.Get(t.Context(), mapping, "n", "object")
	server.Close() // the server has stopped sending
	if !errors.Is(err, ErrResponseTooLarge) || Classify(err) != Blocked {
		t.Errorf("got %v, want the limit", err)
	}
	if sent >= most {
		t.Errorf("all %d bytes were read", sent)
	}
}
