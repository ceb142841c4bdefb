package reflector

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// TestPagesByBytes: lists of objects with nearly the maximum of metadata are read within the
// limits.
func TestPagesByBytes(t *testing.T) {
	t.Parallel()
	const objects, lists = 150, 4
	annotation := strings.Repeat("a", 250<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := ""
		if from+limit < objects {
			next = strconv.Itoa(from + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q}, "items": [`, next)
		for i := from; i < min(from+limit, objects); i++ {
			_, _ = io.WriteString(w, strings.Repeat(",", min(i-from, 1))+fmt.Sprintf(`{"metadata": {"name": "%d", "annotations": {"a": "`, i))
			_, _ = io.WriteString(w, annotation)
			_, _ = io.WriteString(w, `"}}}`)
		}
		_, _ = io.WriteString(w, "]}")
	}))
	t.Cleanup(server.Close)
	config, read := metadata.ConfigFor(&rest.Config{Host: server.URL, QPS: -1}), &measured{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { read.RoundTripper = next; return read })
	BoundPages(config)
	client, err := rest.UnversionedRESTClientFor(config)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range lists {
		all.Go(func() {
			source := &Source{
				Client: client, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, MetadataOnly: true,
				NewList: func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
			}
			seen := 0
			err := pager.New(source.ListWithContext).EachListItem(context.WithoutCancel(t.Context()), metav1.ListOptions{}, func(runtime.Object) error { seen++; return nil })
			if err != nil || seen != objects {
				t.Errorf("%d objects: %v", seen, err)
			}
		})
	}
	all.Wait()
	if read.largest > limits.ResponseBytes+(1<<20) || read.most > limits.LargePages {
		t.Errorf("pages of up to %d MiB were read, and %d large ones at a time", read.largest>>20, read.most)
	}
}

// measured is a transport that measures how much is read.
type measured struct {
	http.RoundTripper
	mu                   sync.Mutex
	largest, large, most int
}

// RoundTrip sends a request.
func (m *measured) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &measuredBody{ReadCloser: resp.Body, of: m}
	}
	return resp, err
}

type measuredBody struct {
	io.ReadCloser
	of    *measured
	bytes int
}

const certainlyLarge = limits.LargePageBytes * 2

// Read implements io.Reader.
func (b *measuredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.bytes <= certainlyLarge && b.bytes+n > certainlyLarge {
		b.of.large++
	}
	b.bytes += n
	b.of.largest, b.of.most = max(b.of.largest, b.bytes), max(b.of.most, b.of.large)
	return n, err
}

// Close implements io.Closer.
func (b *measuredBody) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.bytes > certainlyLarge {
		b.of.large--
	}
	return b.ReadCloser.Close()
}
