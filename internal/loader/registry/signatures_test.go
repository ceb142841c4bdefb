package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

func (s *server) repository(t testing.TB) name.Repository {
	t.Helper()
	repository, err := name.NewRepository(s.host+"/team/shop", name.Insecure)
	require.NoError(t, err)
	return repository
}

// serveReferrers is a registry with or without the referrers API.
func serveReferrers(t testing.TB, api bool) *server {
	t.Helper()
	s := serve(t, httptest.NewServer)
	if api {
		s.referrers = true
	}
	return s
}

// forms are the common forms of signatures, with the number of requests that a verification takes.
var forms = map[string]int{"referrer": 3, "fallback tag": 4, ".sig": 4}

// serveSigned is a registry with an image that is signed in a form, by a key or a certificate, and
// the policy that accepts it.
func serveSigned(t testing.TB, form string, keyless bool) (s *server, ref, digest string, verification *imagepolicy.Verification) {
	t.Helper()
	s = serveReferrers(t, form == "referrer")
	ref, digest = s.push(t, imageOf(t, testFiles))
	var authority imagepolicy.Authority
	var bundle, payload []byte
	var layer map[string]string
	if keyless {
		virtual := signed.NewSigstore(t)
		authority, bundle = virtual.Authority(false), virtual.Bundle(digest, imagepolicy.PredicateType, signed.Subject, nil)
		payload, layer = virtual.Simple(digest, signed.Subject)
	} else {
		own := signed.NewPair(t)
		authority, bundle = own.Authority(), own.Bundle(t, digest)
		payload, layer = own.Simple(t, digest)
	}

	if form == ".sig" {
		signed.AttachSimple(t, s.repository(t), digest, payload, layer)
	} else {
		signed.Attach(t, s.repository(t), digest, bundle)
	}

	s.forget()
	return s, ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{authority}}
}

// forget drops the counted requests.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// asked is the number of requests, except those that find out how to reach the registry.
func (s *server) asked() int {
	pings := s.count("GET /v2/")
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests) - pings
}

// TestSignatures checks that each common form is found with few requests, and that a second
// verification needs none.
func TestSignatures(t *testing.T) {
	t.Parallel()
	for form, requests := range forms {
		for _, by := range []string{"key", "keyless"} {
			t.Run(form+", "+by, func(t *testing.T) {
				t.Parallel()
				s, ref, digest, verification := serveSigned(t, form, by == "keyless")
				p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
				verified, err := p.Verify(t.Context(), ref, digest, verification, "k")
				if err != nil || verified.Authority != "release" || (verified.Subject != "") != (by == "keyless") {
					t.Fatalf("%v, %v", verified, err)
				}
				require.Equal(t, requests, s.asked(), "requests")
				before := len(s.requests)
				if _, err := p.Verify(t.Context(), ref, digest, verification, "k"); err != nil || len(s.requests) != before {
					t.Errorf("the second verification: %v, %d requests", err, len(s.requests)-before)
				}
				if _, err := p.Verify(t.Context(), ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()}}, "another"); imagepolicy.RefusalOf(err) == nil {
					t.Errorf("the cached result counts for another policy: %v", err)
				}
			})
		}
	}
}

// TestOnlyTheRegistryIsAsked checks that there is no connection to any other server, such as TUF,
// Rekor and Fulcio, and no name is resolved for one, even if no signature is good.
func TestOnlyTheRegistryIsAsked(t *testing.T) { // not parallel: it replaces the resolver and the transport of the process
	var mu sync.Mutex
	var others []string
	record := func(what string) error {
		mu.Lock()
		defer mu.Unlock()
		others = append(others, what)
		return errors.New("no other server is asked in this test")
	}

	resolver, transport := net.DefaultResolver, http.DefaultTransport
	t.Cleanup(func() { net.DefaultResolver, http.DefaultTransport = resolver, transport })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, record("a name server") }}
	for form := range forms {
		for _, keyless := range []bool{false, true} {
			http.DefaultTransport = transport // it fills the registry
			s, ref, digest, verification := serveSigned(t, form, keyless)
			http.DefaultTransport = refuses(func(r *http.Request) error { return record(r.URL.String()) })
			dialled := map[string]bool{}
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{ConnectStart: func(_, address string) {
				mu.Lock()
				defer mu.Unlock()
				dialled[address] = true
			}})
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
			if _, err := p.Verify(ctx, ref, digest, verification, "k"); err != nil {
				t.Errorf("%s, keyless %t: %v", form, keyless, err)
			}
			foreign := signed.NewSigstore(t).Authority(false)
			if _, err := p.Verify(ctx, ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{foreign}}, "foreign"); imagepolicy.RefusalOf(err) == nil {
				t.Errorf("%s, keyless %t: %v", form, keyless, err)
			}
			if len(dialled) != 1 || !dialled[s.host] || len(others) > 0 {
				t.Errorf("%s, keyless %t: connections to %v, and to %v; the registry is %s", form, keyless, dialled, others, s.host)
			}
		}
	}

	// This proves that the test would notice a request.
	if _, err := http.Get("https://rekor.sigstore.dev/"); err == nil || len(others) != 1 { // it is refused
		t.Errorf("a request that must not be made: %v, %v", err, others)
	}
}

type refuses func(*http.Request) error

func (f refuses) RoundTrip(r *http.Request) (*http.Response, error) { return nil, f(r) }

// TestVerifiedTogether checks that concurrent callers share one verification, even if the first
// caller gives up. Nothing is shared with other credentials.
func TestVerifiedTogether(t *testing.T) {
	t.Parallel()
	s, ref, digest, verification := serveSigned(t, "referrer", false)
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/referrers/") {
			once.Do(func() { close(entered) })
			<-open
		}
		return false
	})

	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := p.Verify(first, ref, digest, verification, "k")
		gone <- err
	}()
	<-entered
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() {
			if verified, err := p.Verify(t.Context(), ref, digest, verification, "k"); err != nil || verified.Authority != "release" {
				t.Errorf("%v, %v", verified, err)
			}
		})
	}

	for p.checks.waiting() < 501 {
		runtime.Gosched()
	}

	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) || imagepolicy.RefusalOf(err) != nil {
		t.Errorf("the caller that gave up: %v", err)
	}

	other := p.With(Access{Keychain: keychainFor(t, s.host, "password"), Own: true})
	wg.Go(func() {
		if _, err := other.Verify(t.Context(), ref, digest, verification, "k"); err != nil {
			t.Error(err)
		}
	})

	for p.checks.count() < 2 {
		runtime.Gosched()
	}

	close(open)
	wg.Wait()
	if n := s.asked(); n > 2*forms["referrer"] {
		t.Errorf("%d requests for two verifications: %v", n, s.requests)
	}
}

// count is the number of works in progress.
func (f *flights[T]) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.flights)
}

// TestSignaturesOfAnother checks that the resolved digest is verified even if the tag has moved.
func TestSignaturesOfAnother(t *testing.T) {
	t.Parallel()
	own := signed.NewPair(t)
	verification := &imagepolicy.Verification{Authorities: []imagepolicy.Authority{own.Authority()}}
	s := serveReferrers(t, true)
	ref, good := s.push(t, imageOf(t, testFiles))
	signed.Attach(t, s.repository(t), good, own.Bundle(t, good))
	changed := map[string][]byte{"manifest.yaml": []byte("kind: Evil\n")}
	_, evil := s.push(t, imageOf(t, changed))
	// The good image's signature is moved to the other image.
	signed.Attach(t, s.repository(t), evil, own.Bundle(t, good))
	payload, layer := own.Simple(t, good)
	signed.AttachSimple(t, s.repository(t), evil, payload, layer)
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	_, err := p.Verify(t.Context(), ref, evil, verification, "k")
	refusal := imagepolicy.RefusalOf(err)
	if refusal == nil || refusal.Reason != imagepolicy.ReasonSignatureInvalid || !strings.Contains(refusal.Message, "none of its 2 signatures suffices; one of them: it is a signature of another image") {
		t.Errorf("the signature of another image: %v", err)
	}
	if _, err := p.Verify(t.Context(), ref, good, verification, "k"); err != nil {
		t.Errorf("the image that was signed: %v", err)
	}

	image, err := p.Pull(t.Context(), s.repository(t).Digest(good).String())
	if err != nil || image.Digest != good || string(image.Files["manifest.yaml"]) != string(testFiles["manifest.yaml"]) {
		t.Errorf("the verified image is not the pulled one: %v", err)
	}
}

// TestHostileSignatures checks that a registry with any number of signatures, or one that does not
// answer, takes a bounded time and is not trusted.
func TestHostileSignatures(t *testing.T) {
	t.Parallel()
	own := signed.NewPair(t)
	const attestation = "https://slsa.dev/provenance/v1"
	digestOf := func(data []byte) v1.Hash {
		h, _, _ := v1.SHA256(strings.NewReader(string(data)))
		return h
	}

	answer := func(w http.ResponseWriter, mediaType types.MediaType, body any) bool {
		w.Header().Set("Content-Type", string(mediaType))
		_ = json.NewEncoder(w).Encode(body)
		return true
	}

	referrers := func(n int, annotations map[string]string, manifest []byte) v1.IndexManifest {
		index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
		for range n {
			index.Manifests = append(index.Manifests, v1.Descriptor{
				MediaType: types.OCIManifestSchema1, Digest: digestOf(manifest), Size: int64(len(manifest)), ArtifactType: imagepolicy.BundleMediaType, Annotations: annotations,
			})
		}
		return index
	}

	huge := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":%q,"size":2},"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		types.OCIManifestSchema1, digestOf([]byte("{}")), imagepolicy.BundleMediaType, digestOf([]byte("x")), 1<<30)

	for name, tc := range map[string]struct {
		hook   func(http.ResponseWriter, *http.Request) bool
		reason imagepolicy.Reason
		text   string
		most   int
	}{
		"1,000 attestations": {func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/referrers/") && answer(w, types.OCIImageIndex, referrers(1000, map[string]string{imagepolicy.PredicateAnnotation: attestation}, huge))
		}, imagepolicy.ReasonNoSignature, "attestations (1000), which are not signatures", 5},
		"1,000 signatures of 1 GiB": {func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.Contains(r.URL.Path, "/referrers/"):
				return answer(w, types.OCIImageIndex, referrers(1000, nil, huge))
			case strings.HasSuffix(r.URL.Path, digestOf(huge).String()):
				w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
				_, _ = w.Write(huge)
				return true
			}
			return false
		}, imagepolicy.ReasonSignatureInvalid, "it has 1073741824 bytes; the limit is 262144; at least 900 more signatures were not read", limits.Signatures + 5},
		"1,000 that are not there": {func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/referrers/") && answer(w, types.OCIImageIndex, referrers(1000, nil, huge))
		}, imagepolicy.ReasonSignatureInvalid, "the registry lists it and has it not", limits.Signatures + 5},
		"pages without an end": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/referrers/") {
				return false
			}
			w.Header().Set("Link", fmt.Sprintf("<%s?n=%d>; rel=next", r.URL.Path, time.Now().UnixNano()))
			return answer(w, types.OCIImageIndex, referrers(1, map[string]string{imagepolicy.PredicateAnnotation: attestation}, huge))
		}, imagepolicy.ReasonNoSignature, "attestations (20)", limits.ReferrerPages + 5},
		"no answer about referrers": {func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				<-r.Context().Done()
				return true
			}
			return false
		}, imagepolicy.ReasonRegistryUnreachable, "did not answer within", 5},
		"the list is not JSON": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.Header().Set("Content-Type", string(types.OCIImageIndex))
				_, _ = w.Write([]byte("[[["))
				return true
			}
			return false
		}, imagepolicy.ReasonRegistryUnreachable, "not a JSON object", 5},
		"forbidden": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".sig") {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		}, imagepolicy.ReasonRegistryUnreachable, "unauthorized", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveReferrers(t, true)
			ref, digest := s.push(t, imageOf(t, testFiles))
			s.set(tc.hook)
			var timeouts Timeouts
			if tc.text == "did not answer within" {
				timeouts.Header = time.Second
			}
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}, Timeouts: timeouts, CacheDir: t.TempDir()})
			begin := time.Now()
			_, err := p.Verify(context.Background(), ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{own.Authority()}}, "k")
			refusal := imagepolicy.RefusalOf(err)
			if refusal == nil || refusal.Reason != tc.reason || !strings.Contains(refusal.Message, tc.text) {
				t.Fatalf("%v, want %s: …%s", err, tc.reason, tc.text)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.requests) > tc.most || time.Since(begin) > 30*time.Second {
				t.Errorf("%d requests in %v", len(s.requests), time.Since(begin))
			}
		})
	}

	t.Run("a good one behind others", func(t *testing.T) {
		t.Parallel()
		s := serveReferrers(t, true)
		ref, digest := s.push(t, imageOf(t, testFiles))
		signed.Attach(t, s.repository(t), digest, []byte("{}"))
		signed.Attach(t, s.repository(t), digest, own.Attested(t, digest, attestation))
		payload, layer := own.Simple(t, digest)
		signed.AttachSimple(t, s.repository(t), digest, payload, layer)
		p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
		if _, err := p.Verify(context.Background(), ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{own.Authority()}}, "k"); err != nil {
			t.Error(err)
		}
	})
}

// TestExact checks that the manager's settings do not redirect an image that an ImageConfig
// rewrote.
func TestExact(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, digest := s.push(t, imageOf(t, testFiles))
	overrides, err := ParseOverrides(s.host + "=elsewhere.example.com")
	require.NoError(t, err)
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, ImagePrefixes: overrides})
	if got, err := p.With(Access{Exact: true}).Resolve(t.Context(), ref); err != nil || got != digest {
		t.Errorf("%s, %v", got, err)
	}
}

// TestLongLists checks that the memory for a registry's lists is bounded, regardless of the number
// of entries. It measures the allocations of the whole process, so it must not run in parallel with
// other tests.
func TestLongLists(t *testing.T) {
	const most = 128 << 20 // of allocations, including garbage: the text of 4 MiB is copied as it arrives
	// full is a response of the maximum size, with as many entries as possible.
	full := func(format, entry string) []byte {
		n := (limits.ImageManifestBytes - 1000) / (len(entry) + 1)
		return fmt.Appendf(nil, format, bytes.TrimSuffix(bytes.Repeat([]byte(entry+","), n), []byte(",")))
	}

	const (
		index    = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}`
		manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[%s]}`
	)
	digest := "sha256:" + strings.Repeat("1", 64)
	own := signed.NewPair(t)
	verify := func(p *Puller, ref string) error {
		_, err := p.Verify(context.Background(), ref, digest, &imagepolicy.Verification{Authorities: []imagepolicy.Authority{own.Authority()}}, "k")
		return err
	}

	pull := func(p *Puller, ref string) error {
		_, err := p.Pull(context.Background(), ref)
		return err
	}

	tags := func(p *Puller, ref string) error {
		_, err := p.Tags(context.Background(), ref)
		return err
	}

	for name, tc := range map[string]struct {
		path      string
		mediaType types.MediaType
		body      []byte
		use       func(*Puller, string) error
		text      string
		requests  int
	}{
		"referrers that can be signatures": {"/referrers/", types.OCIImageIndex, full(index, `{"digest":"`+digest+`"}`), verify, "more signatures were not read, because the limit is 100", 2},
		"attestations": {"/referrers/", types.OCIImageIndex, full(index, `{"digest":"`+digest+`","annotations":{"`+imagepolicy.PredicateAnnotation+`":"x"}}`), verify,
			"the list of referrers has more than 50000 entries and fields", 1},
		"referrers without digests": {"/referrers/", types.OCIImageIndex, full(index, "{}"), verify, "the list of referrers has more than 50000 entries and fields", 1},
		"signatures of cosign 2":    {".sig", types.OCIManifestSchema1, full(manifest, "{}"), verify, "the manifest has more than 50000 entries and fields", 1},
		"images of an index":        {"/manifests/v1", types.OCIImageIndex, full(index, "{}"), pull, "the manifest has more than 50000 entries and fields", 3},
		"layers of an image":        {"/manifests/v1", types.OCIManifestSchema1, full(manifest, "{}"), pull, "the manifest has more than 50000 entries and fields", 3},
		"tags":                      {"/tags/list", "application/json", full(`{"tags":[%s]}`, `""`), tags, "the list of tags has more than 50000 entries and fields", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveReferrers(t, true)
			requests := 0
			body := tc.body
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				manifest := strings.HasPrefix(tc.path, "/manifests/") && strings.Contains(r.URL.Path, "/manifests/")
				if !manifest && !strings.Contains(r.URL.Path, tc.path) {
					return false
				}
				requests++
				w.Header().Set("Content-Type", string(tc.mediaType))
				w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, requests))
				_, _ = w.Write(body)
				return true
			})
			p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tc.use(p, s.host+"/team/shop:v1")
			runtime.ReadMemStats(&after)
			t.Logf("%d requests, %d MiB", requests, (after.TotalAlloc-before.TotalAlloc)>>20)
			require.ErrorContains(t, err, tc.text)
			if n := after.TotalAlloc - before.TotalAlloc; n > most || requests > tc.requests {
				t.Errorf("%d requests, %d MiB were allocated; the limit is %d MiB", requests, n>>20, most>>20)
			}
		})
	}
}
