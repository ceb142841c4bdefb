package fetch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// policed is an image source with a policy for its image.
func policed(ref string, p imagepolicy.Policy, required bool) Source {
	s := imageSource(ref)
	s.Image = imagepolicy.NewSet([]imagepolicy.Policy{p}, required, time.Now()).Decide(ref, imagepolicy.Repository)
	return s
}

func (s *imageServer) policy(mode imagepolicy.Mode, key signed.Pair) imagepolicy.Policy {
	return imagepolicy.Policy{Name: "acme", Prefixes: []string{s.host}, Verification: &imagepolicy.Verification{
		Mode: mode, Purposes: []imagepolicy.Purpose{imagepolicy.Repository}, Authorities: []imagepolicy.Authority{key.Authority()},
	}}
}

func (s *imageServer) sign(t *testing.T, repository, digest string, key signed.Pair) {
	t.Helper()
	repo, err := name.NewRepository(s.host+"/"+repository, name.Insecure)
	require.NoError(t, err)
	signed.Attach(t, repo, digest, key.Bundle(t, digest))
	s.since()
}

// refused fetches an image that must not be used, and returns the refusal.
func refused(t *testing.T, f *Fetcher, s Source, known string) *imagepolicy.Refusal {
	t.Helper()
	r, err := f.Fetch(t.Context(), s, known)
	refusal := imagepolicy.RefusalOf(err)
	if refusal == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return refusal
}

// An image without the signature is not read. One with it is verified once by each key, and
// downloaded once.
func TestImageIsVerified(t *testing.T) {
	t.Parallel()
	own, other := signed.NewPair(t), signed.NewPair(t)
	s := serveImages(t)
	f := s.fetcher(t)
	digest := s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "a"})
	ref := s.host + "/repo:v1"
	source := policed(ref, s.policy(imagepolicy.Enforce, own), false)
	if refusal := refused(t, f, source, ""); refusal.Reason != imagepolicy.ReasonNoSignature || !strings.HasPrefix(refusal.Error(), "the image "+ref+" is not verified: ") || !strings.HasSuffix(refusal.Error(), "(ImageConfig acme)") {
		t.Error(refusal)
	}
	for _, request := range s.since() {
		if strings.HasSuffix(request, "/manifests/"+digest) || strings.Contains(request, "/blobs/") {
			t.Errorf("before it was verified: %s", request)
		}
	}

	s.sign(t, "repo", digest, own)
	first := fetched(t, f, source, "")
	if v := first.Verification; v == nil || v.Verified == nil || v.Verified.Policy != "acme" || string(first.Files["repository/repository.yaml"]) != "a" {
		t.Errorf("%+v", first)
	}
	s.since()
	again := fetched(t, f, source, first.Validator)
	if diff := cmp.Diff([]string{"HEAD /v2/repo/manifests/v1"}, s.since()); diff != "" || !again.NotModified || again.Verification != nil || again.Validator != first.Validator {
		t.Error(diff, again)
	}
	restarted := s.fetcher(t)
	fetched(t, restarted, source, first.Validator)
	require.Equal(t, []string{"HEAD /v2/repo/manifests/v1"}, s.since(), "another process verifies it again")

	changed := policed(ref, s.policy(imagepolicy.Enforce, other), false)
	if refusal := refused(t, f, changed, first.Validator); refusal.Reason != imagepolicy.ReasonSignatureInvalid {
		t.Error(refusal)
	}
	s.sign(t, "repo", digest, other)
	second := fetched(t, f, changed, first.Validator)
	if !second.NotModified || second.Verification == nil || second.Verification.Verified == nil || second.Validator == first.Validator {
		t.Errorf("what is known is verified by the other key alone: %+v", second)
	}
	if none := fetched(t, f, imageSource(ref), second.Validator); !none.NotModified || none.Verification != nil || VerifiedBy(none.Validator) != "" {
		t.Errorf("no signature is needed any more: %+v", none)
	}
}

// The content of a digest never changes, but the keys that verify it can.
func TestDigestIsVerified(t *testing.T) {
	t.Parallel()
	own := signed.NewPair(t)
	s := serveImages(t)
	f := s.fetcher(t)
	digest := s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "a"})
	ref := s.host + "/repo@" + digest
	plain := fetched(t, f, imageSource(ref), "")
	source := policed(ref, s.policy(imagepolicy.Enforce, own), false)
	refused(t, f, source, plain.Validator)
	s.sign(t, "repo", digest, own)
	verified := fetched(t, f, source, plain.Validator)
	if !verified.NotModified || verified.Verification == nil {
		t.Errorf("%+v", verified)
	}

	s.since()
	if again := fetched(t, s.fetcher(t), source, verified.Validator); !again.NotModified || len(s.since()) > 0 {
		t.Errorf("%+v", again)
	}
}

// With Warn, the content is used, and each fetch looks for the signature.
func TestImageIsWarnedOf(t *testing.T) {
	t.Parallel()
	own := signed.NewPair(t)
	s := serveImages(t)
	f := s.fetcher(t)
	digest := s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "a"})
	source := policed(s.host+"/repo:v1", s.policy(imagepolicy.Warn, own), false)
	first := fetched(t, f, source, "")
	if first.Verification == nil || first.Verification.Refusal == nil || len(first.Files) != 1 || VerifiedBy(first.Validator) != "" {
		t.Fatalf("%+v", first)
	}

	s.sign(t, "repo", digest, own)
	if again := fetched(t, f, source, first.Validator); !again.NotModified || again.Verification == nil || again.Verification.Verified == nil {
		t.Errorf("%+v", again)
	}
}

// The verified digest is fetched even if the tag has moved in the meantime.
func TestTagMovesAfterVerification(t *testing.T) {
	t.Parallel()
	own := signed.NewPair(t)
	s := serveImages(t)
	digest := s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "good"})
	s.sign(t, "repo", digest, own)
	var swap func()
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/referrers/") && swap != nil {
			now := swap
			swap = nil
			now()
		}
		handler.ServeHTTP(w, r)
	})

	swap = func() { s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "evil"}) }
	r := fetched(t, s.fetcher(t), policed(s.host+"/repo:v1", s.policy(imagepolicy.Enforce, own), false), "")
	if swap != nil || r.Revision != digest || string(r.Files["repository/repository.yaml"]) != "good" {
		t.Errorf("swapped: %t, fetched %s: %s", swap == nil, r.Revision, r.Files)
	}

	refused(t, s.fetcher(t), policed(s.host+"/repo:v1", s.policy(imagepolicy.Enforce, own), false), r.Validator)
}

// An image is pulled from the policy's address, and its offers keep the names that policies apply
// to.
func TestImageIsRewritten(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	f := s.fetcher(t)
	locked := "sha256:" + strings.Repeat("1", 64)
	digest := s.push(t, "mirror/team/bundle:v1", map[string]string{
		".imgpkg/images.yml": "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- image: index.docker.io/team/shop@" + locked + "\n",
		"a.yaml":             "image: index.docker.io/team/shop@" + locked + "\n",
	})
	s.push(t, "mirror/team/bundle:"+strings.Replace(digest, ":", "-", 1)+".image-locations.imgpkg", map[string]string{"x": ""})
	source := policed("origin.example.com/team/bundle:v1", imagepolicy.Policy{Name: "mirror", Prefixes: []string{"origin.example.com"}, Rewrite: s.host + "/mirror"}, false)
	r := fetched(t, f, source, "")
	require.Equal(t, "image: origin.example.com/team/bundle@"+locked+"\n", string(r.Files["a.yaml"]))

	// Back from the mirror: a rewrite is applied only once.
	circle := imagepolicy.NewSet([]imagepolicy.Policy{
		{Name: "there", Prefixes: []string{"origin.example.com"}, Rewrite: s.host + "/mirror"}, {Name: "back", Prefixes: []string{s.host}, Rewrite: "origin.example.com"},
	}, false, time.Now())
	source.Image = circle.Decide("origin.example.com/team/bundle:v1", imagepolicy.Repository)
	fetched(t, f, source, "")
}

// If verification is required, an image that no policy verifies is refused without a request. The
// same applies to an image with two policies.
func TestImageOfNoPolicy(t *testing.T) {
	t.Parallel()
	s := serveImages(t)
	digest := s.push(t, "repo:v1", map[string]string{"repository/repository.yaml": "a"})
	for _, ref := range []string{s.host + "/repo:v1", s.host + "/repo@" + digest} {
		known := fetched(t, s.fetcher(t), imageSource(ref), "").Validator
		s.since()
		source := policed(ref, imagepolicy.Policy{Name: "other", Prefixes: []string{"origin.example.com"}}, true)
		if refusal := refused(t, s.fetcher(t), source, known); refusal.Reason != imagepolicy.ReasonNoPolicy || !strings.Contains(refusal.Error(), ref) || len(s.since()) > 0 {
			t.Error(refusal)
		}
	}
}
