package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

// server is a registry that counts requests and lets a test answer first.
type server struct {
	*httptest.Server
	host string

	mu       sync.Mutex
	requests []string
	// hook answers a request and returns true, or leaves it to the registry.
	hook func(http.ResponseWriter, *http.Request) bool
}

func serve(t *testing.T, start func(http.Handler) *httptest.Server) *server {
	t.Helper()
	s := &server{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
			s.requests = append(s.requests, r.Method+" "+kindOf(r.URL.Path))
		}
		hook := s.hook
		s.mu.Unlock()
		if hook == nil || !hook(w, r) {
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

func layerOf(t *testing.T, files archive.Files) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, p := range files.Paths() {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + p, Typeflag: tar.TypeReg, Size: int64(len(files[p])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[p]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return static.NewLayer(b.Bytes(), types.OCIUncompressedLayer)
}

func imageOf(t *testing.T, files archive.Files) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layerOf(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

var testFiles = archive.Files{"manifest.yaml": []byte("kind: PackageManifest\n"), "a/b.yaml": []byte("x")}

// push stores an image and returns its reference by tag and its digest.
func (s *server) push(t *testing.T, img interface {
	Digest() (v1.Hash, error)
	remote.Taggable
}) (ref, digest string) {
	t.Helper()
	ref = s.host + "/team/shop:v1"
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if index, ok := any(img).(v1.ImageIndex); ok {
		err = remote.WriteIndex(parsed, index, remote.WithTransport(s.Client().Transport))
	} else {
		err = remote.Write(parsed, any(img).(v1.Image), remote.WithTransport(s.Client().Transport))
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	return ref, h.String()
}

func newPuller(t *testing.T, opts Options) *Puller {
	t.Helper()
	opts.OnCacheError = func(err error) { t.Logf("cache: %v", err) }
	p, err := NewPuller(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var quick = Timeouts{Connect: 2 * time.Second, Header: time.Second, Stall: 500 * time.Millisecond, Pull: 20 * time.Second}

func TestPull(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, digest := s.push(t, imageOf(t, testFiles))
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, CacheDir: t.TempDir()})
	ctx := context.Background()

	got, err := p.Pull(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Image{Ref: ref, Digest: digest, Files: testFiles}, got); diff != "" {
		t.Error(diff)
	}
	if got, err := p.Resolve(ctx, ref); got != digest || err != nil {
		t.Error(got, err)
	}
	blobs, manifests := s.count("GET blobs"), s.count("GET manifests")
	if blobs != 1 || manifests != 1 {
		t.Errorf("%d blobs and %d manifests were downloaded", blobs, manifests)
	}
	if _, err := p.Pull(ctx, ref); err != nil {
		t.Fatal(err)
	}
	if s.count("GET blobs") != blobs || s.count("GET manifests") != manifests {
		t.Error("the second pull downloads again")
	}
	before := len(s.requests)
	byDigest, err := p.Pull(ctx, s.host+"/team/shop@"+digest)
	if err != nil || !cmp.Equal(byDigest.Files, testFiles) || len(s.requests) != before {
		t.Error("a known digest needs no request", err, s.requests[before:])
	}
	withoutCache := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	if got, err := withoutCache.Pull(ctx, ref); err != nil || !cmp.Equal(got.Files, testFiles) {
		t.Error("without a cache", err)
	}
}

func TestPullChecksTheCache(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	dir := t.TempDir()
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, CacheDir: dir})
	if _, err := p.Pull(context.Background(), ref); err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, blobFolder, "*"))
	if err != nil || len(blobs) != 2 {
		t.Fatal(blobs, err)
	}
	for _, blob := range blobs {
		data, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(blob, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := p.Pull(context.Background(), ref); err != nil || !cmp.Equal(got.Files, testFiles) {
		t.Error(err)
	}
	if s.count("GET blobs") != 2 || s.count("GET manifests") != 2 {
		t.Error("what was damaged is downloaded again", s.requests)
	}
}

func TestPullDownloadsOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && kindOf(r.URL.Path) == "blobs" {
			once.Do(func() { close(entered) })
			<-open
		}
		return false
	})
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	first, cancel := context.WithCancel(context.Background())
	firstErr := make(chan error, 1)
	go func() {
		_, err := p.Pull(first, ref)
		firstErr <- err
	}()
	<-entered
	var wg sync.WaitGroup
	errs := make(chan error, 20)
	for range 20 {
		wg.Go(func() {
			_, err := p.Pull(context.Background(), ref)
			errs <- err
		})
	}
	for s.count("HEAD manifests") < 21 {
		time.Sleep(time.Millisecond)
	}
	// The one who began leaves; the others get the image all the same.
	cancel()
	if err := <-firstErr; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(open)
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := s.count("GET blobs"); n > 2 {
		t.Errorf("the layer was downloaded %d times", n)
	}
}

func TestAbandonedPullEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	ended := make(chan struct{})
	entered := make(chan struct{})
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if kindOf(r.URL.Path) == "blobs" {
			close(entered)
			<-r.Context().Done()
			close(ended)
			return true
		}
		return false
	})
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-entered; cancel() }()
	if _, err := p.Pull(ctx, ref); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the download goes on for nobody")
	}
}

// A dozen packages on a registry that hangs hold up no other.
func TestHangingRegistryHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	good := serve(t, httptest.NewServer)
	ref, _ := good.push(t, imageOf(t, testFiles))
	hanging := serve(t, httptest.NewServer)
	hanging.set(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	p := newPuller(t, Options{InsecureRegistries: []string{good.host, hanging.host}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() { _, _ = p.Pull(ctx, fmt.Sprintf("%s/p%d:v1", hanging.host, i)) })
	}
	for hanging.count("GET /v2/") < limits.PullsPerHost {
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	if _, err := p.Pull(context.Background(), ref); err != nil || time.Since(start) > 5*time.Second {
		t.Error(err, time.Since(start))
	}
	cancel()
	wg.Wait()
	if n := hanging.count("GET /v2/"); n > limits.PullsPerHost {
		t.Errorf("%d pulls at a time on one host", n)
	}
	if n := len(p.hosts.hosts); n != 0 {
		t.Errorf("%d hosts are remembered", n)
	}
}

func reasonOf(err error) (Reason, bool) {
	var e *PullError
	if !errors.As(err, &e) {
		return "", false
	}
	return e.Reason, e.Temporary
}

func TestFaultyRegistries(t *testing.T) {
	t.Parallel()
	on := func(kind string, answer func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || kindOf(r.URL.Path) != kind {
				return false
			}
			answer(w, r)
			return true
		}
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}
	flood := func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for _, test := range []struct {
		name      string
		hook      func(http.ResponseWriter, *http.Request) bool
		want      Reason
		temporary bool
		text      string
	}{
		{"hangs", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }, ReasonTimeout, true, "timeout awaiting response headers"},
		{"stalls within a manifest", on("manifests", drip), ReasonTimeout, true, fmt.Sprintf("less than %d bytes in 500ms", limits.StallBytes)},
		{"stalls within a layer", on("blobs", drip), ReasonTimeout, true, fmt.Sprintf("less than %d bytes in 500ms", limits.StallBytes)},
		{"never ends a manifest", on("manifests", flood), ReasonLimit, false, fmt.Sprintf("more than %d bytes", limits.ImageManifestBytes)},
		{"never ends a layer", on("blobs", flood), ReasonLimit, false, "bytes where at most that many are expected"},
		{"redirects for ever", on("blobs", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), ReasonLimit, false, fmt.Sprintf("redirects more than %d times", limits.Redirects)},
		{"redirects to plain HTTP", on("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/x?X-Signature=geheim", http.StatusFound)
		}), ReasonInsecure, false, "example.com would be reached by plain HTTP"},
		{"redirects to the metadata service", on("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/x", http.StatusFound)
		}), ReasonForbiddenAddress, false, "169.254.169.254"},
		{"redirects to a file", on("blobs", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}), ReasonForbiddenAddress, false, `the scheme "file" is not HTTPS`},
		{"sends another manifest", on("manifests", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"schemaVersion":2}`) }), ReasonDigestMismatch, false, "the content has the digest sha256:"},
		{"sends another layer of the same size", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || kindOf(r.URL.Path) != "blobs" {
				return false
			}
			size, _ := layerOf(t, testFiles).Size()
			_, _ = w.Write(make([]byte, size))
			return true
		}, ReasonDigestMismatch, false, "not sha256:"},
		{"sends a shorter layer", on("blobs", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }), ReasonInvalidImage, false, "its manifest says"},
		{"lacks the image", func(w http.ResponseWriter, r *http.Request) bool {
			http.NotFound(w, r)
			return true
		}, ReasonNotFound, false, "404"},
		{"wants credentials", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, ReasonUnauthorized, false, "Check the name of the image and the pull secret."},
		{"fails", func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "over\nloaded", http.StatusServiceUnavailable)
			return true
		}, ReasonUnavailable, true, "503 Service Unavailable: over loaded"},
		{"asks to wait", on("blobs", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000000")
			w.WriteHeader(http.StatusTooManyRequests)
		}), ReasonUnavailable, true, "429"},
		{"breaks off", on("blobs", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), ReasonUnreachable, true, "EOF"},
		{"sends a header of 1 MiB", on("blobs", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }), ReasonUnreachable, true, "header"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(h http.Handler) *httptest.Server {
				s := httptest.NewUnstartedServer(h)
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.Start()
				return s
			})
			ref, _ := s.push(t, imageOf(t, testFiles))
			s.set(test.hook)
			dir := t.TempDir()
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}, Timeouts: quick, CacheDir: dir})
			start := time.Now()
			_, err := p.Pull(context.Background(), ref)
			reason, temporary := reasonOf(err)
			if reason != test.want || temporary != test.temporary || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v (%q, temporary %v), want %q, %q, temporary %v", err, reason, temporary, test.want, test.text, test.temporary)
			}
			if d := time.Since(start); d > 15*time.Second {
				t.Errorf("took %v", d)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, blobFolder, tempPattern+"*")); len(left) > 0 {
				t.Error("temporary files are left", left)
			}
			s.set(nil)
			if _, err := p.Pull(context.Background(), ref); err != nil {
				t.Error("a fault is not remembered", err)
			}
		})
	}
}

func TestPullTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if kindOf(r.URL.Path) == "blobs" {
			<-r.Context().Done()
		}
		return false
	})
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, Timeouts: Timeouts{Pull: 200 * time.Millisecond}})
	_, err := p.Pull(context.Background(), ref)
	if reason, temporary := reasonOf(err); reason != ReasonTimeout || !temporary || !strings.Contains(err.Error(), "longer than 200ms") {
		t.Error(err)
	}
}

func TestRefusedImages(t *testing.T) {
	t.Parallel()
	manifest := func(m any) []byte { b, _ := json.Marshal(m); return b }
	layer := v1.Descriptor{MediaType: types.OCILayer, Size: 10 << 30, Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}}
	many := make([]v1.Descriptor, 10_000)
	for i := range many {
		many[i] = layer
	}
	for _, test := range []struct {
		name string
		body []byte
		want Reason
		text string
	}{
		{"10 GB layer", manifest(content{SchemaVersion: 2, Layers: []v1.Descriptor{layer}}), ReasonLimit, fmt.Sprintf("the layer has %d bytes; the limit is %d", 10<<30, limits.LayerBytes)},
		{"10,000 layers", manifest(content{SchemaVersion: 2, Layers: many}), ReasonLimit, fmt.Sprintf("the image has 10000 layers; the limit is %d", limits.ImageLayers)},
		{"100 MB manifest", append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 100<<20)...), ReasonLimit, fmt.Sprintf("more than %d bytes", limits.ImageManifestBytes)},
		{"no JSON", []byte("<html>"), ReasonInvalidImage, "no JSON object"},
		{"schema 1", []byte(`{"schemaVersion":1}`), ReasonInvalidImage, "schema version 1"},
		{"index and image", manifest(content{SchemaVersion: 2, Layers: []v1.Descriptor{layer}, Manifests: []v1.Descriptor{layer}}), ReasonInvalidImage, "an index and an image at the same time"},
		{"other media type", []byte(`{"schemaVersion":2,"mediaType":"text/plain"}`), ReasonInvalidImage, `"text/plain", which is no image`},
		{"contradicting media type", []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","layers":[{}]}`), ReasonInvalidImage, "the index lists no image"},
		{"empty index", []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json"}`), ReasonInvalidImage, "the index lists no image"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, httptest.NewServer)
			h, _, _ := v1.SHA256(bytes.NewReader(test.body))
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				if kindOf(r.URL.Path) != "manifests" {
					return false
				}
				w.Header().Set("Docker-Content-Digest", h.String())
				_, _ = w.Write(test.body)
				return true
			})
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
			_, err := p.Pull(context.Background(), s.host+"/x:v1")
			if reason, temporary := reasonOf(err); reason != test.want || temporary || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %q %q", err, test.want, test.text)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	image := func(body string) v1.Image { return imageOf(t, archive.Files{"which": []byte(body)}) }
	add := func(platform *v1.Platform, body string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: image(body), Descriptor: v1.Descriptor{Platform: platform}}
	}
	for _, test := range []struct {
		reason string
		index  v1.ImageIndex
		want   string
	}{
		{"linux/amd64 is chosen", mutate.AppendManifests(empty.Index,
			add(&v1.Platform{OS: "linux", Architecture: "arm64"}, "arm"), add(&v1.Platform{OS: "linux", Architecture: "amd64"}, "amd")), "amd"},
		{"else the first", mutate.AppendManifests(empty.Index,
			add(&v1.Platform{OS: "linux", Architecture: "s390x"}, "s390x"), add(&v1.Platform{OS: "linux", Architecture: "arm64"}, "arm")), "s390x"},
		{"attestations are no image", mutate.AppendManifests(empty.Index,
			add(&v1.Platform{OS: "unknown", Architecture: "unknown"}, "attestation"), add(&v1.Platform{OS: "linux", Architecture: "arm64"}, "arm")), "arm"},
	} {
		s := serve(t, httptest.NewServer)
		ref, digest := s.push(t, test.index)
		p := newPuller(t, Options{InsecureRegistries: []string{s.host}, CacheDir: t.TempDir()})
		for range 2 {
			got, err := p.Pull(context.Background(), ref)
			if err != nil || got.Digest != digest || string(got.Files["which"]) != test.want {
				t.Errorf("%s: %v, %v", test.reason, err, got)
			}
		}
	}
	nested := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: mutate.AppendManifests(empty.Index, add(nil, "x"))})
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, nested)
	_, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref)
	if reason, _ := reasonOf(err); reason != ReasonInvalidImage {
		t.Error("an index within an index", err)
	}
}

func TestTransportSecurity(t *testing.T) {
	t.Parallel()
	plain := serve(t, httptest.NewServer)
	plainRef, _ := plain.push(t, imageOf(t, testFiles))
	encrypted := serve(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		return s
	})
	encryptedRef, _ := encrypted.push(t, imageOf(t, testFiles))
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: encrypted.Certificate().Raw}
	if err := os.WriteFile(bundle, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason string
		opts   Options
		ref    string
		want   Reason
		text   string
	}{
		{"plain HTTP has to be named, also on loopback", Options{}, plainRef, ReasonInsecure, "name this host as an insecure registry"},
		{"another port is another host", Options{InsecureRegistries: []string{"127.0.0.1"}}, plainRef, ReasonInsecure, ""},
		{"plain HTTP, named", Options{InsecureRegistries: []string{plain.host}}, plainRef, "", ""},
		{"unknown authority", Options{}, encryptedRef, ReasonUnreachable, "CA bundle"},
		{"known authority", Options{CABundle: bundle}, encryptedRef, "", ""},
		{"unknown authority, named", Options{InsecureRegistries: []string{encrypted.host}}, encryptedRef, "", ""},
	} {
		_, err := newPuller(t, test.opts).Pull(context.Background(), test.ref)
		if reason, _ := reasonOf(err); reason != test.want || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	target, _ := url.Parse(s.URL)
	seen := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Host
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", target.Host, ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(proxy.Close)
	at, _ := url.Parse(proxy.URL)
	p := newPuller(t, Options{InsecureRegistries: []string{"registry.example"}, Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme == "https" {
			return nil, errors.New("no HTTPS here")
		}
		return at, nil
	}})
	ref = strings.Replace(ref, s.host, "registry.example", 1)
	if _, err := p.Pull(context.Background(), ref); err != nil || <-seen != "registry.example" {
		t.Error(err)
	}
}

func TestNewPullerRefusesBadOptions(t *testing.T) {
	t.Parallel()
	notPEM := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(notPEM, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []Options{
		{CABundle: "/nowhere"}, {CABundle: notPEM}, {InsecureRegistries: []string{"http://x"}}, {InsecureRegistries: []string{""}}, {CacheDir: notPEM},
	} {
		if _, err := NewPuller(opts); err == nil {
			t.Errorf("%+v", opts)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	p := newPuller(t, Options{})
	for ref, text := range map[string]string{
		"":                          "it is empty",
		"https://example.com/x":     "begins with a scheme",
		"user:geheim@example.com/x": "contains credentials",
		"UPPER/Case":                "cannot be parsed",
		"example.com/x@sha256:1234": "cannot be parsed",
		"example.com/x:a b":         "cannot be parsed",
		"example.com/" + strings.Repeat("x", 4<<10): fmt.Sprintf("the limit is %d", limits.ReferenceBytes),
	} {
		_, err := p.Pull(context.Background(), ref)
		if reason, _ := reasonOf(err); reason != ReasonInvalidReference || !strings.Contains(err.Error(), text) ||
			strings.Contains(err.Error(), "geheim") || len(err.Error()) > 600 {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if got, err := p.Resolve(context.Background(), "ubuntu@sha256:"+strings.Repeat("a", 64)); err != nil || got != "sha256:"+strings.Repeat("a", 64) {
		t.Error(got, err)
	}
}
