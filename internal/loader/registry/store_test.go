package registry

import (
	"bytes"
	"context"
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
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

func blobOf(t *testing.T, s view, content string) v1.Hash {
	t.Helper()
	h, _, err := v1.SHA256(bytes.NewReader([]byte(content)))
	require.NoError(t, err)
	f, err := s.put(h, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
	require.NoError(t, err)
	if data, err := readAll(f); err != nil || string(data) != content {
		t.Fatal(data, err)
	}
	return h
}

func TestStoreEvictsWhatWasUsedLeastRecently(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all, err := newStore(dir, 10, func(err error) { t.Error(err) })
	require.NoError(t, err)
	s := view{store: all}
	a, b := blobOf(t, s, "aaaa"), blobOf(t, s, "bbbb")
	old := time.Now().Add(-time.Minute)
	for _, h := range []v1.Hash{a, b} {
		require.NoError(t, os.Chtimes(s.path(h), old, old))
	}

	stale := filepath.Join(s.dir, tempPattern+"1")
	require.NoError(t, os.WriteFile(stale, nil, 0o600))
	require.NoError(t, os.Chtimes(stale, old, time.Now().Add(-2*tempAge)))
	f := s.open(a)
	if f == nil {
		t.Fatal("a is gone")
	}

	_ = f.Close()
	c := blobOf(t, s, "cccc")
	for h, want := range map[v1.Hash]bool{a: true, b: false, c: true} {
		f := s.open(h)
		require.Equal(t, want, f != nil, fmt.Sprintf("%s is kept", h))
		if f != nil {
			_ = f.Close()
		}
	}

	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a broken download left is still there")
	}

	large := blobOf(t, s, "a blob that is larger than all")
	if f := s.open(large); f == nil {
		t.Error("the newest blob stays, however large")
	}
}

// With many small packages, a look at the folder for each of their blobs would be quadratic.
func TestStoreLooksAtItsFolderOnceInAWhile(t *testing.T) {
	t.Parallel()
	all, err := newStore(t.TempDir(), 160, func(err error) { t.Error(err) })
	require.NoError(t, err)
	s := view{store: all}
	blobOf(t, s, "the first")

	old := time.Now().Add(-time.Minute)
	foreign := filepath.Join(s.dir, "sha256-foreign")
	require.NoError(t, os.WriteFile(foreign, make([]byte, 500), 0o600))
	require.NoError(t, os.Chtimes(foreign, old, old))
	blobOf(t, s, "seconds")
	_, err = os.Stat(foreign)
	require.NoError(t, err) // 7 of 10 bytes are stored

	blobOf(t, s, "thirds")
	_, err = os.Stat(foreign)
	require.Equal(t, true, errors.Is(err, os.ErrNotExist), "evicted once 10 bytes are stored")
}

// A stored layer is not read into memory as a manifest.
func TestStoredManifestIsBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		size    int64
		refused bool
	}{{limits.ImageManifestBytes, false}, {limits.ImageManifestBytes + 1, true}} {
		f, err := os.Create(filepath.Join(t.TempDir(), "blob"))
		require.NoError(t, err)
		require.NoError(t, f.Truncate(test.size))
		data, err := readAll(f)
		var e *failure
		if errors.As(err, &e); (e != nil && e.reason == ReasonLimit) != test.refused || !test.refused && int64(len(data)) != test.size {
			t.Errorf("%d bytes: read %d with %v", test.size, len(data), err)
		}
	}
}

// Other namespaces can pull regardless of how many registries of one namespace hang.
func TestPullsTakeTurns(t *testing.T) {
	t.Parallel()
	hanging, healthy := serve(t, httptest.NewServer), serve(t, httptest.NewServer)
	ref, digest := healthy.push(t, imageOf(t, testFiles))
	ref = strings.TrimSuffix(ref, ":v1") + "@" + digest // evil waits for it as well
	hanging.set(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	p := newPuller(t, Options{InsecureRegistries: []string{hanging.host, healthy.host}})
	ctx, cancel := context.WithCancel(t.Context())
	evil := p.With(Access{Namespace: "evil"})
	ended := make(chan struct{})
	for i := range limits.PullsInFlight {
		go func() {
			image := fmt.Sprintf("%s/evil-%d:v1", hanging.host, i)
			if i == limits.PullsInFlight-1 {
				until(t, func() bool { used, _ := p.pulls.Depth(); return used == limits.PullsOfNamespace })
				image = ref
			}
			_, _ = evil.Pull(ctx, image)
			ended <- struct{}{}
		}()
	}

	defer func() {
		cancel()
		for range limits.PullsInFlight {
			<-ended
		}
	}()

	until(t, func() bool {
		used, waiting := p.pulls.Depth()
		return used+waiting == limits.PullsInFlight
	})
	limited, end := context.WithTimeout(t.Context(), 8*time.Second)
	defer end()
	began := time.Now()
	_, err := p.With(Access{Namespace: "victim"}).Pull(limited, ref)
	if took := time.Since(began); err != nil || took > 2*time.Second {
		t.Errorf("it took %s: %v", took, err)
	}
}

// All downloads together stay within their account on disk, and the downloads of one namespace
// leave room for others.
func TestDiskOfAllDownloads(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	image := imageOf(t, testFiles)
	ref, _ := s.push(t, image)
	manifest, err := image.Manifest()
	require.NoError(t, err)
	layer := manifest.Layers[0].Size
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	p.disk = queueing.NewSemaphore(4*layer, 2*layer)

	var onDisk, most atomic.Int64
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if kindOf(r.URL.Path) == "blobs" {
			now := onDisk.Add(layer)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
		}
		return false
	})
	admit := make(chan struct{})
	pull := func(namespace string, n int) <-chan error {
		ended := make(chan error, n)
		for range n {
			access := Access{Namespace: namespace, Selection: &archive.Selection{}, Admit: func() error {
				<-admit
				onDisk.Add(-layer)
				return nil
			}}
			go func() {
				_, err := p.With(access).Pull(t.Context(), ref)
				ended <- err
			}()
		}
		return ended
	}
	evil := pull("evil", 24)
	until(t, func() bool {
		_, waiting := p.disk.Depth()
		return onDisk.Load()/layer+waiting == 24
	})
	victim := pull("victim", 1)
	until(t, func() bool { return onDisk.Load() == most.Load() && onDisk.Load() >= 3*layer })
	close(admit)
	require.NoError(t, <-victim)
	for range 24 {
		require.NoError(t, <-evil)
	}
	if used, _ := p.disk.Depth(); used != 0 || most.Load() > 3*layer {
		t.Errorf("%d bytes stay reserved, and %d layers were on the disk at a time", used, most.Load()/layer)
	}
}

// until waits until a condition holds.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return holds(), nil })
	require.NoError(t, err)
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
	require.NoError(t, os.WriteFile(bundle, pem.EncodeToMemory(block), 0o600))
	for _, test := range []struct {
		reason string
		opts   Options
		ref    string
		want   Reason
		text   string
	}{
		{"plain HTTP has to be named, also on loopback", Options{}, plainRef, ReasonInsecure, "name this host by --insecure-registry"},
		{"another port is another host", Options{InsecureRegistries: []string{"127.0.0.1"}}, plainRef, ReasonInsecure, ""},
		{"plain HTTP, named", Options{InsecureRegistries: []string{plain.host}}, plainRef, "", ""},
		{"unknown authority", Options{}, encryptedRef, ReasonUnreachable, "Give its certificate authority: --registry-ca " + encrypted.host + "=FILE."},
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

// large writes a file that exceeds the limit of certificate authorities.
func large(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, make([]byte, limits.CertificateBytes+1), 0o600))
	return file
}

func TestNewPullerRefusesBadOptions(t *testing.T) {
	t.Parallel()
	notPEM := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(notPEM, []byte("x"), 0o600))
	for _, opts := range []Options{
		{CABundle: "/nowhere"}, {CABundle: notPEM}, {InsecureRegistries: []string{"http://x"}}, {InsecureRegistries: []string{""}}, {CacheDir: notPEM},
		{Authorities: Authorities{"a.example": "/nowhere"}}, {Authorities: Authorities{"a.example": notPEM}}, {Authorities: Authorities{"a.example": filepath.Dir(notPEM)}},
		{Authorities: Authorities{"a.example": large(t)}}, {Authorities: Authorities{"a.example": "x"}, InsecureRegistries: []string{"a.example:443"}},
	} {
		if _, err := NewPuller(opts); err == nil {
			t.Errorf("%+v", opts)
		}
	}
}
