package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

func TestPull(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, digest := s.push(t, imageOf(t, testFiles))
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, CacheDir: t.TempDir()})
	ctx := context.Background()

	got, err := p.Pull(ctx, ref)
	require.NoError(t, err)
	require.Equal(t, &Image{Digest: digest, Files: testFiles}, got)
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

// Images are pulled from mirrors, and errors name them.
func TestOverrides(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	_, digest := s.push(t, imageOf(t, testFiles))
	for _, c := range []struct {
		reason, prefixes, hosts, ref string
		found                        bool
	}{
		{"the prefix is replaced", "quay.io/org/=" + s.host + "/team/", "", "quay.io/org/shop:v1", true},
		{"the longest prefix counts", "quay.io/=nowhere.invalid/,quay.io/org/=" + s.host + "/team/", "", "quay.io/org/shop:v1", true},
		{"the registry is replaced", "", "quay.io=" + s.host, "quay.io/team/shop:v1", true},
		{"digests stay", "", "quay.io=" + s.host, "quay.io/team/shop@" + digest, true},
		{"first the prefix, then the registry", "old.test/=quay.io/", "quay.io=" + s.host, "old.test/team/shop:v1", true},
		{"an error names the mirror", "", "quay.io=" + s.host, "quay.io/team/none:v1", false},
	} {
		prefixes, err := ParseOverrides(c.prefixes)
		require.NoError(t, err)
		hosts, err := ParseHostOverrides(c.hosts)
		require.NoError(t, err)
		p := newPuller(t, Options{InsecureRegistries: []string{s.host}, ImagePrefixes: prefixes, RegistryHosts: hosts})
		got, err := p.Pull(t.Context(), c.ref)
		switch {
		case c.found && (err != nil || got.Digest != digest):
			t.Errorf("%s: %v, %v", c.reason, got, err)
		case !c.found && (err == nil || !strings.Contains(err.Error(), c.ref) || !strings.Contains(err.Error(), s.host+"/team/none:v1")):
			t.Errorf("%s: %v", c.reason, err)
		}
	}

	for _, hostile := range []string{"quay.io.evil.test/team/shop:v1", "quay.iox/team/shop:v1"} {
		hosts, err := ParseHostOverrides("quay.io=" + s.host)
		require.NoError(t, err)
		parsed, err := newPuller(t, Options{RegistryHosts: hosts}).parse(hostile)
		if err != nil || strings.HasPrefix(parsed.Name(), s.host) {
			t.Errorf("%s is pulled as %v, %v", hostile, parsed, err)
		}
	}

	for text, want := range map[string]string{"a": "FROM=TO", "=b": "FROM=TO", "a=b,a=c": "twice"} {
		if _, err := ParseOverrides(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}

	if _, err := ParseHostOverrides("a=b/c"); err == nil {
		t.Error("a path was taken for a host")
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
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, os.WriteFile(blob, data, 0o600))
	}

	if got, err := p.Pull(context.Background(), ref); err != nil || !cmp.Equal(got.Files, testFiles) {
		t.Error(err)
	}
	if s.count("GET blobs") != 2 || s.count("GET manifests") != 2 {
		t.Error("the damaged blob is downloaded again", s.requests)
	}
}

// TestTagMovesDuringAPull checks that a tag is resolved once, and that this image is downloaded
// even if the tag moves (invariant 7).
func TestTagMovesDuringAPull(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, digest := s.push(t, imageOf(t, testFiles))
	later := imageOf(t, archive.Files{"later": []byte("x")})
	resolved, moved := false, false
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case kindOf(r.URL.Path) != "manifests":
		case !resolved:
			resolved = true
		default: // all later requests
			moved = true
			s.set(nil)
			s.push(t, later)
		}
		return false
	})

	got, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref)
	require.NoError(t, err)
	if !moved {
		t.Fatal("the tag did not move")
	}
	if got.Digest != digest || !cmp.Equal(got.Files, testFiles) {
		t.Errorf("got %s with %v, want %s with the files of it", got.Digest, got.Files.Paths(), digest)
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

	for p.flights.waiting() < 21 {
		runtime.Gosched() // a caller that arrives after the download starts another one
	}

	// The first caller is cancelled, but the others still get the image.
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

// waiting counts all callers.
func (f *flights[T]) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, fl := range f.flights {
		n += fl.waiting
	}
	return n
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
	case <-time.After(time.Minute):
		t.Error("the download continues without callers")
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	image := func(body string) v1.Image { return imageOf(t, archive.Files{"which": []byte(body)}) }
	add := func(platform *v1.Platform, body string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: image(body), Descriptor: v1.Descriptor{Platform: platform}}
	}

	within := func(inner v1.ImageIndex) v1.ImageIndex {
		return mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: inner})
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
		{"attestations are not an image", mutate.AppendManifests(empty.Index,
			add(&v1.Platform{OS: "unknown", Architecture: "unknown"}, "attestation"), add(&v1.Platform{OS: "linux", Architecture: "arm64"}, "arm")), "arm"},
		{"an index within an index", within(mutate.AppendManifests(empty.Index, add(nil, "inner"))), "inner"},
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

	nested := within(within(mutate.AppendManifests(empty.Index, add(nil, "x"))))
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, nested)
	_, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref)
	if reason, _ := reasonOf(err); reason != ReasonInvalidImage {
		t.Error("three indexes", err)
	}
}

func keychainFor(t *testing.T, host, password string) authn.Keychain {
	t.Helper()
	keys, err := NewKeychain([]byte(fmt.Sprintf(`{"auths":{"%s":{"username":"user","password":"%s"}}}`, host, password)))
	require.NoError(t, err)
	return keys
}

// The credentials of a pull are used only for that pull. A concurrent pull of the same image does
// not get content that it could not read itself.
func TestAccessIsNotShared(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		switch {
		case r.Method == http.MethodHead:
			return false // the right to resolve a tag does not include the right to read the image
		case password != "geheim":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		case kindOf(r.URL.Path) == "blobs":
			once.Do(func() { close(arrived) })
			<-release
		}
		return false
	})

	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, Keychain: authn.NewMultiKeychain()})
	pulled := make(chan error, 1)
	go func() {
		_, err := p.With(Access{Keychain: keychainFor(t, s.host, "geheim")}).Pull(context.Background(), ref)
		pulled <- err
	}()
	<-arrived
	for name, other := range map[string]*Puller{
		"without credentials":    p,
		"with other credentials": p.With(Access{Keychain: keychainFor(t, s.host, "falsch")}),
	} {
		_, err := other.Pull(context.Background(), ref)
		if reason, _ := reasonOf(err); reason != ReasonUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}

	close(release)
	if err := <-pulled; err != nil {
		t.Error(err)
	}
}

// Offline, the content of the cache is used without requests.
func TestOffline(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, digest := s.push(t, imageOf(t, testFiles))
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, CacheDir: t.TempDir()})
	offline := p.With(Access{Offline: true})
	byDigest := s.host + "/team/shop@" + digest
	for _, reference := range []string{ref, byDigest} {
		_, err := offline.Pull(context.Background(), reference)
		if reason, temporary := reasonOf(err); reason != ReasonNotCached || temporary {
			t.Errorf("%s: %v", reference, err)
		}
	}

	if n := len(s.requests); n > 0 {
		t.Errorf("asked: %v", s.requests)
	}
	if _, err := p.Pull(context.Background(), ref); err != nil {
		t.Fatal(err)
	}

	before := len(s.requests)
	image, err := offline.Pull(context.Background(), byDigest)
	if err != nil || image.Digest != digest || len(image.Files) != len(testFiles) || len(s.requests) != before {
		t.Errorf("%v %v %v", image, err, s.requests[before:])
	}
}

// A list of tags can have several pages on the same registry, and it has an end.
func TestTags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		links []string // of the pages; empty ends the list
		tags  int      // of a page
		want  int
		text  string
	}{
		{"one page", []string{""}, 2, 2, ""},
		{"relative links", []string{"</v2/team/shop/tags/list?n=2&last=b>; rel=\"next\"", ""}, 2, 4, ""},
		{"a link to itself", []string{"</v2/team/shop/tags/list?n=1000>", "</v2/team/shop/tags/list?n=1000>"}, 2, 2, ""},
		{"a link elsewhere", []string{"<https://169.254.169.254/x?geheim>"}, 1, 0, "goes on at another host, 169.254.169.254"},
		{"no link", []string{"<%zz>"}, 1, 0, "a link that cannot be read"},
		{"too many", []string{""}, limits.Tags + 1, 0, fmt.Sprintf("more than %d tags", limits.Tags)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, httptest.NewServer)
			page := 0
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/tags/list") {
					return false
				}
				if test.links[page] != "" {
					w.Header().Set("Link", test.links[page])
				}
				page++
				_, _ = io.WriteString(w, `{"tags":["x"`+strings.Repeat(`,"x"`, test.tags-1)+`]}`)
				return true
			})
			tags, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Tags(context.Background(), s.host+"/team/shop:v1")
			if test.text == "" {
				if err != nil || !slices.Equal(tags, slices.Repeat([]string{"x"}, test.want)) {
					t.Error(tags, err)
				}
				return
			}
			if reason, _ := reasonOf(err); reason == "" || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "geheim") {
				t.Error(err)
			}
		})
	}
}

// The text of a panic over an image can quote a Secret in it.
func TestRecoveredQuotesNothing(t *testing.T) {
	t.Parallel()
	_, err := recovered(t.Context(), func(context.Context) (archive.Files, error) { panic("hunter2") })
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "the image cannot be read: reading the image failed by a defect of this engine") {
		t.Errorf("got %v", err)
	}
}
