package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
)

// A dozen packages on a hanging registry do not hold up other registries.
func TestHangingRegistryHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	good := serve(t, httptest.NewServer)
	ref, _ := good.push(t, imageOf(t, testFiles))
	hanging := serve(t, httptest.NewServer)
	hanging.set(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	p := newPuller(t, Options{InsecureRegistries: []string{good.host, hanging.host}, Timeouts: Timeouts{Header: time.Hour, Pull: time.Hour}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() { _, _ = p.Pull(ctx, fmt.Sprintf("%s/p%d:v1", hanging.host, i)) })
	}

	hanging.await(t, "GET /v2/", 12)
	meanwhile, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	if _, err := p.Pull(meanwhile, ref); err != nil {
		t.Error(err)
	}

	cancel()
	wg.Wait()
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
		{"hangs", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }, ReasonTimeout, true, "did not answer within"},
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
		{"sends another manifest", on("manifests", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"schemaVersion":2}`) }), ReasonDigestMismatch, false, "the content has another digest than sha256:"},
		{"sends another layer of the same size", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || kindOf(r.URL.Path) != "blobs" {
				return false
			}
			size, _ := layerOf(t, testFiles).Size()
			_, _ = w.Write(make([]byte, size))
			return true
		}, ReasonDigestMismatch, false, "the content has another digest than sha256:"},
		{"sends a shorter layer", on("blobs", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }), ReasonInvalidImage, false, "its manifest declares"},
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
			var timeouts Timeouts // the only one that should expire, so that no other does on a busy machine
			switch {
			case strings.Contains(test.text, "500ms"):
				timeouts.Stall = 500 * time.Millisecond
			case test.want == ReasonTimeout:
				timeouts.Header = time.Second
			}
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}, Timeouts: timeouts, CacheDir: dir})
			start := time.Now()
			_, err := p.Pull(context.Background(), ref)
			reason, temporary := reasonOf(err)
			if reason != test.want || temporary != test.temporary || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v (%q, temporary %v), want %q, %q, temporary %v", err, reason, temporary, test.want, test.text, test.temporary)
			}
			if d := time.Since(start); d > limits.ResponseHeaderTimeout {
				t.Errorf("took %v", d)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, blobFolder, tempPattern+"*")); len(left) > 0 {
				t.Error("temporary files are left", left)
			}
			s.set(nil)
			p.opts.Timeouts = newPuller(t, Options{}).opts.Timeouts // the short one can expire on a busy machine
			if _, err := p.Pull(context.Background(), ref); err != nil {
				t.Error("a fault is not remembered", err)
			}
		})
	}
}

// A registry that fails each request at first, like one that restarts, costs these requests and no
// pull.
func TestFailedRequestsAreRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	var mu sync.Mutex
	times := map[string]int{}
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		request := r.Method + " " + r.URL.Path
		if times[request]++; times[request] > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})

	if _, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref); err != nil {
		t.Error(err)
	}

	mu.Lock()
	defer mu.Unlock()
	for request, n := range times {
		if n > 3 {
			t.Errorf("%s was sent %d times", request, n)
		}
	}

	if len(times) < 4 {
		t.Errorf("only %v were sent", times)
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
		{"no JSON", []byte("<html>"), ReasonInvalidImage, "not a JSON object"},
		{"schema 1", []byte(`{"schemaVersion":1}`), ReasonInvalidImage, "schema version 1"},
		{"index and image", manifest(content{SchemaVersion: 2, Layers: []v1.Descriptor{layer}, Manifests: []v1.Descriptor{layer}}), ReasonInvalidImage, "an index and an image at the same time"},
		{"other media type", []byte(`{"schemaVersion":2,"mediaType":"text/plain"}`), ReasonInvalidImage, `"text/plain", which is not an image`},
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

func TestReferences(t *testing.T) {
	t.Parallel()
	p := newPuller(t, Options{})
	for ref, text := range map[string]string{
		"":                          "it is empty",
		"https://example.com/x":     "starts with a scheme",
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

// If a registry limits the rate of requests, a pull waits and then continues.
func TestThrottled(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	var answered sync.Map
	wait := "1"
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		if _, before := answered.LoadOrStore(r.URL.Path, true); before || kindOf(r.URL.Path) != "blobs" {
			return false
		}
		w.Header().Set("Retry-After", wait)
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	started := time.Now()
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	if _, err := p.Pull(context.Background(), ref); err != nil || time.Since(started) < time.Second {
		t.Errorf("after %v: %v", time.Since(started), err)
	}

	answered.Clear()
	wait = "600"
	_, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref)
	var failed *PullError
	if !errors.As(err, &failed) || failed.Reason != ReasonUnavailable || !failed.Temporary || failed.RetryAfter() != 10*time.Minute ||
		!strings.Contains(failed.Details, "429 Too Many Requests and wants none for 10m0s") {
		t.Errorf("%v: %+v", err, failed)
	}
}
