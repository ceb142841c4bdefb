package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

// server is a registry that counts requests and lets a test answer first.
type server struct {
	*httptest.Server
	host string

	// referrers means that the registry serves the referrers API.
	referrers bool

	mu       sync.Mutex
	requests []string
	// hook answers a request and returns true, or leaves it to the registry.
	hook func(http.ResponseWriter, *http.Request) bool
}

func serve(t testing.TB, start func(http.Handler) *httptest.Server) *server {
	t.Helper()
	s := &server{}
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	inner, referrers := registry.New(quiet), registry.New(quiet, registry.WithReferrersSupport(true))
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
			s.requests = append(s.requests, r.Method+" "+kindOf(r.URL.Path))
		}
		hook := s.hook
		s.mu.Unlock()
		switch {
		case hook != nil && hook(w, r):
		case s.referrers:
			referrers.ServeHTTP(w, r)
		default:
			inner.ServeHTTP(w, r)
		}
	}))

	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	s.host = strings.TrimPrefix(strings.TrimPrefix(s.URL, "https://"), "http://")
	return s
}

func kindOf(path string) string {
	for _, kind := range []string{"manifests", "blobs"} {
		if strings.Contains(path, "/"+kind+"/") {
			return kind
		}
	}
	return path
}

func (s *server) set(hook func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// await waits for a number of requests.
func (s *server) await(t *testing.T, request string, n int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return s.count(request) >= n, nil })
	if err != nil {
		t.Fatalf("%d of %d requests %s: %v", s.count(request), n, request, err)
	}
}

func (s *server) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if r == request {
			n++
		}
	}
	return n
}

func layerOf(t testing.TB, files archive.Files) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range files.Paths() {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "package/" + p, Typeflag: tar.TypeReg, Size: int64(len(files[p])), Mode: 0o644}))
		if _, err := w.Write(files[p]); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
	return static.NewLayer(b.Bytes(), types.OCIUncompressedLayer)
}

func imageOf(t testing.TB, files archive.Files) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layerOf(t, files))
	require.NoError(t, err)
	return img
}

var testFiles = archive.Files{"manifest.yaml": []byte("kind: PackageManifest\n"), "a/b.yaml": []byte("x")}

// push stores an image and returns its reference by tag and its digest.
func (s *server) push(t testing.TB, img interface {
	Digest() (v1.Hash, error)
	remote.Taggable
}) (ref, digest string) {
	t.Helper()
	ref = s.host + "/team/shop:v1"
	parsed, err := name.ParseReference(ref, name.Insecure)
	require.NoError(t, err)
	if index, ok := any(img).(v1.ImageIndex); ok {
		err = remote.WriteIndex(parsed, index, remote.WithTransport(s.Client().Transport))
	} else {
		err = remote.Write(parsed, any(img).(v1.Image), remote.WithTransport(s.Client().Transport))
	}

	require.NoError(t, err)
	h, err := img.Digest()
	require.NoError(t, err)
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	return ref, h.String()
}

// newPuller returns a Puller that pulls from loopback addresses, where the tests' registries are.
func newPuller(t testing.TB, opts Options) *Puller {
	t.Helper()
	opts.Policy.Local = true
	opts.OnCacheError = func(err error) { t.Logf("cache: %v", err) }
	p, err := NewPuller(opts)
	require.NoError(t, err)
	return p
}

func reasonOf(err error) (Reason, bool) {
	var e *PullError
	if !errors.As(err, &e) {
		return "", false
	}
	return e.Reason, e.Temporary
}
