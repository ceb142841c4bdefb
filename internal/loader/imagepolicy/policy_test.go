package imagepolicy_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	key := signed.NewPair(t).Authority()
	verification := func(purposes ...imagepolicy.Purpose) *imagepolicy.Verification {
		return &imagepolicy.Verification{Mode: imagepolicy.Enforce, Purposes: purposes, Authorities: []imagepolicy.Authority{key}}
	}
	set := imagepolicy.NewSet([]imagepolicy.Policy{
		{Name: "hub", Prefixes: []string{"docker.io"}, Rewrite: "mirror.example.com/hub", PullSecret: "hub"},
		{Name: "acme", Prefixes: []string{"docker.io/acme", "registry.example.com:5000/acme/"}, Verification: verification(imagepolicy.Package)},
		{Name: "shop", Prefixes: []string{"docker.io/acme/shop"}, Rewrite: "docker.io/other", Verification: verification(imagepolicy.Repository)},
		{Name: "one", Prefixes: []string{"twice.example.com"}, Rewrite: "a.example.com", PullSecret: "one"},
		{Name: "two", Prefixes: []string{"twice.example.com/"}, Rewrite: "b.example.com"},
		{Name: "three", Prefixes: []string{"twice.example.com"}, Verification: verification(imagepolicy.Package)},
		{Name: "broken", Prefixes: []string{"broken.example.com"}, Rewrite: "https://mirror.example.com"},
	}, false, time.Now())
	for _, tc := range []struct {
		reason  string
		image   string
		purpose imagepolicy.Purpose

		pull, secret, policy string
		refusal              imagepolicy.Reason
	}{
		{reason: "no policy", image: "ghcr.io/acme/shop:v1", purpose: imagepolicy.Package, pull: "ghcr.io/acme/shop:v1"},
		{reason: "a rewrite of all", image: "nginx", purpose: imagepolicy.Package, pull: "mirror.example.com/hub/library/nginx", secret: "hub"},
		{reason: "the tag stays", image: "docker.io/library/nginx:1.29", purpose: imagepolicy.Repository, pull: "mirror.example.com/hub/library/nginx:1.29", secret: "hub"},
		{reason: "the digest stays", image: "nginx@" + image, purpose: imagepolicy.Repository, pull: "mirror.example.com/hub/library/nginx@" + image, secret: "hub"},
		{reason: "both stay", image: "docker.io/a/b:v1@" + image, purpose: imagepolicy.Repository, pull: "mirror.example.com/hub/a/b:v1@" + image, secret: "hub"},
		{reason: "the longest prefix of each purpose", image: "docker.io/acme/tool:v1", purpose: imagepolicy.Package, pull: "mirror.example.com/hub/acme/tool:v1", secret: "hub", policy: "acme"},
		{reason: "verification of another purpose", image: "docker.io/acme/tool:v1", purpose: imagepolicy.Repository, pull: "mirror.example.com/hub/acme/tool:v1", secret: "hub"},
		{reason: "a longer one for the rewrite, a shorter one for the verification", image: "docker.io/acme/shop/web:v1", purpose: imagepolicy.Package, pull: "docker.io/other/web:v1", secret: "hub", policy: "acme"},
		{reason: "a rewrite is applied once, so there are no circles", image: "docker.io/acme/shop:v1", purpose: imagepolicy.Repository, pull: "docker.io/other:v1", secret: "hub", policy: "shop"},
		{reason: "whole segments", image: "registry.example.com:5000/acme-evil/shop:v1", purpose: imagepolicy.Package, pull: "registry.example.com:5000/acme-evil/shop:v1"},
		{reason: "the port belongs to the host", image: "registry.example.com/acme/shop:v1", purpose: imagepolicy.Package, pull: "registry.example.com/acme/shop:v1"},
		{reason: "within the prefix", image: "registry.example.com:5000/acme/shop:v1", purpose: imagepolicy.Package, pull: "registry.example.com:5000/acme/shop:v1", policy: "acme"},
		{reason: "other names of Docker Hub", image: "registry-1.docker.io/acme/tool:v1", purpose: imagepolicy.Package, pull: "mirror.example.com/hub/acme/tool:v1", secret: "hub", policy: "acme"},
		{reason: "of two with one prefix none counts", image: "twice.example.com/a:v1", purpose: imagepolicy.Repository, pull: "twice.example.com/a:v1", secret: "one", refusal: imagepolicy.ReasonConflicting},
		{reason: "a rewrite that leads nowhere", image: "broken.example.com/a:v1", purpose: imagepolicy.Repository, pull: "broken.example.com/a:v1", refusal: imagepolicy.ReasonInvalidPrefix},
		{reason: "a reference that cannot be read", image: "twice.example.com/A B", purpose: imagepolicy.Package, pull: "twice.example.com/A B", refusal: imagepolicy.ReasonInvalidReference},
	} {
		d := set.Decide(tc.image, tc.purpose)
		refusal := imagepolicy.Reason("")
		if d.Refusal != nil {
			refusal = d.Refusal.Reason
		}
		if d.Pull != tc.pull || d.PullSecret != tc.secret || d.Policy != tc.policy || refusal != tc.refusal || d.Rewritten != (tc.pull != tc.image) {
			t.Errorf("%s: %s as %s: %+v", tc.reason, tc.image, tc.purpose, d)
		}
		require.Equal(t, tc.pull, set.Rewrite(tc.image), fmt.Sprintf("%s: rewritten to", tc.reason))
		if (d.Key() == "") != (tc.pull == tc.image && tc.secret == "" && tc.policy == "" && tc.refusal == "") {
			t.Errorf("%s: key %q", tc.reason, d.Key())
		}
	}
	conflicts := set.Conflicts()
	if len(conflicts) != 2 || !strings.Contains(conflicts["one"], "the ImageConfigs one and two have the same prefix twice.example.com, and each has rewrite") {
		t.Errorf("conflicts: %v", conflicts)
	}
}

// A target below its own prefix is not added twice, in images of packages and in images that
// objects name.
func TestTargetBelowItsPrefix(t *testing.T) {
	t.Parallel()
	set := imagepolicy.NewSet([]imagepolicy.Policy{
		{Name: "below", Prefixes: []string{"registry.example.com"}, Rewrite: "registry.example.com/mirror/"},
		{Name: "above", Prefixes: []string{"quay.io/acme"}, Rewrite: "quay.io"},
	}, false, time.Now())

	for image, want := range map[string]string{
		"registry.example.com/web:v1":                "registry.example.com/mirror/web:v1",
		"registry.example.com/mirror/web:v1":         "registry.example.com/mirror/web:v1",
		"registry.example.com:443/mirror/web":        "registry.example.com:443/mirror/web",
		"registry.example.com/mirrored/web@" + image: "registry.example.com/mirror/mirrored/web@" + image,
		"quay.io/acme/web:v1":                        "quay.io/web:v1",
	} {
		d := set.Decide(image, imagepolicy.Package)
		if d.Pull != want || !d.Rewritten || set.Rewrite(image) != want || set.RewriteInObject(image) != want {
			t.Errorf("%s is pulled from %s, in objects from %s", image, d.Pull, set.RewriteInObject(image))
		}
	}
}

// A name without a host and path can be a placeholder or an image of the cluster. In objects it
// stays unchanged, unless a prefix covers the library of Docker Hub.
func TestNamesWithoutHost(t *testing.T) {
	t.Parallel()
	hub := imagepolicy.Policy{Name: "hub", Prefixes: []string{"docker.io"}, Rewrite: "mirror.example.com/hub"}
	library := imagepolicy.Policy{Name: "library", Prefixes: []string{"docker.io/library"}, Rewrite: "mirror.example.com/hub/library"}
	all, both := imagepolicy.NewSet([]imagepolicy.Policy{hub}, false, time.Now()), imagepolicy.NewSet([]imagepolicy.Policy{hub, library}, false, time.Now())
	for image, want := range map[string][2]string{
		"auto":                    {"auto", "mirror.example.com/hub/library/auto"},
		"web:dev":                 {"web:dev", "mirror.example.com/hub/library/web:dev"},
		"acme/web:v1":             {"mirror.example.com/hub/acme/web:v1", "mirror.example.com/hub/acme/web:v1"},
		"docker.io/nginx:1":       {"mirror.example.com/hub/library/nginx:1", "mirror.example.com/hub/library/nginx:1"},
		"docker.io/library/nginx": {"mirror.example.com/hub/library/nginx", "mirror.example.com/hub/library/nginx"},
	} {
		require.Equal(t, want, [2]string{all.RewriteInObject(image), both.RewriteInObject(image)}, image)
	}

	var none *imagepolicy.Set
	if all.Rewrite("nginx:1") != "mirror.example.com/hub/library/nginx:1" || none.RewriteInObject("nginx") != "nginx" {
		t.Error("images of locks are rewritten as before")
	}
}

// TestSpellings checks that no other spelling of a reference escapes a policy.
func TestSpellings(t *testing.T) {
	t.Parallel()
	set := imagepolicy.NewSet([]imagepolicy.Policy{
		{Name: "a", Prefixes: []string{"ghcr.io/acme", "docker.io/acme"}, Verification: &imagepolicy.Verification{Purposes: []imagepolicy.Purpose{imagepolicy.Package}}},
	}, false, time.Now())

	for _, image := range []string{
		"ghcr.io/acme/shop", "GHCR.io/acme/shop:v1", "ghcr.io:443/acme/shop:v1", "ghcr.io./acme/shop:v1", "acme/shop", "docker.io/acme/shop",
		"index.docker.io/acme/shop", "registry-1.docker.io/acme/shop", "index.docker.io:443/acme/shop",
		"ghcr.io:0443/acme/shop:v1", "ghcr.io:00443/acme/shop:v1", "registry-1.docker.io:0443/acme/shop",
	} {
		if d := set.Decide(image, imagepolicy.Package); d.Policy != "a" {
			t.Errorf("%s escapes", image)
		}
	}

	for _, image := range []string{"ghcr.io//acme/shop:v1", "ghcr.io/acme//shop:v1", "ghcr.io/a//b", "ghcr.io/acme/shop//x", "ghcr.io///acme/shop@" + image, "ghcr.io/acme/Shop:v1", "ghcr.io:/acme/shop"} {
		if d := set.Decide(image, imagepolicy.Package); d.Policy != "a" && (d.Refusal == nil || d.Refusal.Reason != imagepolicy.ReasonInvalidReference || d.Key() == "") {
			t.Errorf("%s escapes: %+v", image, d)
		}
	}
}

func TestRequired(t *testing.T) {
	t.Parallel()
	set := imagepolicy.NewSet(nil, true, time.Now())
	for _, purpose := range []imagepolicy.Purpose{imagepolicy.Package, imagepolicy.Repository} {
		d := set.Decide("ghcr.io/acme/shop:v1", purpose)
		if d.Refusal == nil || d.Refusal.Reason != imagepolicy.ReasonNoPolicy {
			t.Errorf("%s: %v", purpose, d.Refusal)
		}
	}

	if refusal := set.WithoutImage(); refusal == nil || refusal.Reason != imagepolicy.ReasonNoPolicy {
		t.Errorf("content without an image: %v", refusal)
	}

	var none *imagepolicy.Set
	if refusal := none.WithoutImage(); refusal != nil {
		t.Errorf("content without an image, if no verification is required: %v", refusal)
	}
}

// TestKeys checks that the key changes exactly if the outcome can change.
func TestKeys(t *testing.T) {
	t.Parallel()
	now, first, second := time.Now(), signed.NewPair(t), signed.NewPair(t)
	keyOf := func(now time.Time, p imagepolicy.Policy) string {
		p.Name, p.Prefixes = "a", []string{"ghcr.io"}
		d := imagepolicy.NewSet([]imagepolicy.Policy{p}, false, now).Decide("ghcr.io/acme/shop:v1", imagepolicy.Package)
		return d.Key()
	}

	verified := func(mode imagepolicy.Mode, authorities ...imagepolicy.Authority) imagepolicy.Policy {
		return imagepolicy.Policy{Verification: &imagepolicy.Verification{Mode: mode, Purposes: []imagepolicy.Purpose{imagepolicy.Package}, Authorities: authorities}}
	}
	limited := imagepolicy.Key("release", first.Public, time.Time{}, now.Add(time.Hour))
	keys := map[string]string{
		"nothing":           keyOf(now, imagepolicy.Policy{}),
		"key":               keyOf(now, verified(imagepolicy.Enforce, first.Authority())),
		"another key":       keyOf(now, verified(imagepolicy.Enforce, second.Authority())),
		"two keys":          keyOf(now, verified(imagepolicy.Enforce, first.Authority(), second.Authority())),
		"mode":              keyOf(now, verified(imagepolicy.Warn, first.Authority())),
		"a key that is not": keyOf(now, verified(imagepolicy.Enforce, imagepolicy.Unusable("release", "there is no Secret"))),
		"limited":           keyOf(now, verified(imagepolicy.Enforce, limited)),
		"expired":           keyOf(now.Add(2*time.Hour), verified(imagepolicy.Enforce, limited)),
		"rewrite":           keyOf(now, imagepolicy.Policy{Rewrite: "mirror.example.com"}),
		"another rewrite":   keyOf(now, imagepolicy.Policy{Rewrite: "mirror.example.org"}),
		"secret":            keyOf(now, imagepolicy.Policy{PullSecret: "a"}),
	}

	seen := map[string]string{}
	for name, key := range keys {
		if before, twice := seen[key]; twice {
			t.Errorf("%s and %s have the key %q", name, before, key)
		}
		seen[key] = name
	}

	require.Equal(t, keys["limited"], keyOf(now.Add(time.Minute), verified(imagepolicy.Enforce, limited)), "the key depends on the time while the key is valid")
}

func TestParsePrefix(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"ghcr.io": "ghcr.io", "ghcr.io/": "ghcr.io", "docker.io/acme": "index.docker.io/acme", "LOCALHOST:5000/a/b": "localhost:5000/a/b",
		"localhost/a": "localhost/a",
		"":            "", "acme": "", "acme/shop": "", "https://ghcr.io": "", "ghcr.io/acme:v1": "", "ghcr.io/acme@sha256": "", "ghcr.io/a//b": "", "ghcr.io/Acme": "",
		"*.ghcr.io": "", strings.Repeat("a", 2000) + ".io": "",
	} {
		got, err := imagepolicy.ParsePrefix(written)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", written, got, err)
		}
	}
}

// TestSets checks that the key of a set covers everything, including rewrites of images that
// packages name, and that Turns is the next change.
func TestSets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	later := now.Add(time.Hour)
	policy := imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Verification: &imagepolicy.Verification{
		Purposes:    []imagepolicy.Purpose{imagepolicy.Package},
		Authorities: []imagepolicy.Authority{imagepolicy.Key("k", signed.NewPair(t).Public, time.Time{}, later)},
	}}
	rewrite := imagepolicy.Policy{Name: "b", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}
	set, expired, both := imagepolicy.NewSet([]imagepolicy.Policy{policy}, false, now), imagepolicy.NewSet([]imagepolicy.Policy{policy}, false, later),
		imagepolicy.NewSet([]imagepolicy.Policy{rewrite, policy}, false, now)
	if !set.Turns().Equal(later) || !expired.Turns().IsZero() {
		t.Errorf("the key expires at %v, and then at %v", set.Turns(), expired.Turns())
	}
	if set.Key() == expired.Key() || set.Key() == both.Key() || set.Key() != imagepolicy.NewSet([]imagepolicy.Policy{policy}, false, now.Add(time.Minute)).Key() {
		t.Error("the key of a set differs from the key of its content")
	}
	if set.RewriteKey() != "" || both.RewriteKey() == "" {
		t.Errorf("rewrites: %q, %q", set.RewriteKey(), both.RewriteKey())
	}

	former, _ := json.Marshal([]any{[]string{"ghcr.io", "mirror.example.com"}})
	if sum := sha256.Sum256(former); strings.Contains(both.RewriteKey(), hex.EncodeToString(sum[:16])) {
		t.Error("packages stay as a version loaded them that rewrote the images of locks alone")
	}
	require.Equal(t, 0, len(both.Conflicts()), fmt.Sprintf("one that rewrites and one that verifies are in conflict: %v", both.Conflicts()))

	for reason, p := range map[imagepolicy.Reason]imagepolicy.Policy{
		imagepolicy.ReasonInvalidPrefix:    {Prefixes: []string{"acme"}},
		imagepolicy.ReasonTrustRootInvalid: {Prefixes: []string{"ghcr.io"}, Verification: &imagepolicy.Verification{Authorities: []imagepolicy.Authority{imagepolicy.Unusable("k", "there is no Secret")}}},
		"":                                 policy,
	} {
		if got, problem := p.Problem(); got != reason || (problem == "") != (reason == "") {
			t.Errorf("%s: %s", got, problem)
		}
	}
}

// The images of the tests, by their digests.
var (
	image = digestOf("image")
	other = digestOf("another image")
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// offered is the content next to an image in a registry.
type offered struct {
	bundles [][]byte
	payload []byte
	layer   map[string]string
}

func verify(t *testing.T, authorities []imagepolicy.Authority, sigs offered, now time.Time) (*imagepolicy.Verified, *imagepolicy.Refusal) {
	t.Helper()
	v := &imagepolicy.Verification{Mode: imagepolicy.Enforce, Authorities: authorities}
	check, refusal := v.Check(image, now)
	if refusal != nil {
		t.Fatal(refusal)
	}

	for _, b := range sigs.bundles {
		if check.Bundle(b) {
			return check.Result(0)
		}
	}

	if sigs.payload != nil && check.Simple(sigs.payload, sigs.layer) {
		return check.Result(0)
	}

	return check.Result(0)
}

func simple(payload []byte, layer map[string]string) offered {
	return offered{payload: payload, layer: layer}
}

func bundles(b ...[]byte) offered { return offered{bundles: b} }

func TestAccepted(t *testing.T) {
	t.Parallel()
	now, own, virtual := time.Now(), signed.NewPair(t), signed.NewSigstore(t)
	withoutLog := virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil })
	for name, tc := range map[string]struct {
		reason      string
		authorities []imagepolicy.Authority
		signatures  offered
		want        imagepolicy.Verified
	}{
		"key, bundle":       {"sign attaches the same as cosign 3", []imagepolicy.Authority{own.Authority()}, bundles(own.Bundle(t, image)), imagepolicy.Verified{Authority: "release"}},
		"key, simple":       {"cosign 2 is in use", []imagepolicy.Authority{own.Authority()}, simple(own.Simple(t, image)), imagepolicy.Verified{Authority: "release"}},
		"keyless, bundle":   {"by the log and the timestamp", []imagepolicy.Authority{virtual.Authority(false)}, bundles(virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, nil)), imagepolicy.Verified{Authority: "release", Subject: signed.Subject, Issuer: signed.Issuer}},
		"keyless, simple":   {"the promise of the log is enough", []imagepolicy.Authority{virtual.Authority(false)}, simple(virtual.Simple(image, signed.Subject)), imagepolicy.Verified{Authority: "release", Subject: signed.Subject, Issuer: signed.Issuer}},
		"keyless, no log":   {"a timestamp proves when it was signed", []imagepolicy.Authority{virtual.Authority(true)}, bundles(withoutLog), imagepolicy.Verified{Authority: "release", Subject: signed.Subject, Issuer: signed.Issuer}},
		"one of many":       {"one authority and one signature suffice", []imagepolicy.Authority{signed.NewPair(t).Authority(), own.Authority()}, bundles(signed.NewPair(t).Bundle(t, image), own.Bundle(t, other), own.Bundle(t, image)), imagepolicy.Verified{Authority: "release"}},
		"payload, two keys": {"each authority reads the payload from its start", []imagepolicy.Authority{signed.NewPair(t).Authority(), own.Authority()}, simple(own.Simple(t, image)), imagepolicy.Verified{Authority: "release"}},
		"beside a broken":   {"a key that cannot be read does not disturb others", []imagepolicy.Authority{imagepolicy.Unusable("gone", "there is no Secret"), own.Authority()}, bundles(own.Bundle(t, image)), imagepolicy.Verified{Authority: "release"}},
		"expressions": {"they match whole values", []imagepolicy.Authority{virtual.Authority(false, imagepolicy.Identity{IssuerRegExp: `https://.*\.example\.com`, SubjectRegExp: `.*@example\.com`})},
			bundles(virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, nil)), imagepolicy.Verified{Authority: "release", Subject: signed.Subject, Issuer: signed.Issuer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refusal := verify(t, tc.authorities, tc.signatures, now)
			if refusal != nil || *got != tc.want {
				t.Errorf("%s: %v, %v", tc.reason, got, refusal)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	now, own, virtual := time.Now(), signed.NewPair(t), signed.NewSigstore(t)
	expired := imagepolicy.Key("release", own.Public, time.Time{}, now.Add(-time.Hour))
	future := imagepolicy.Key("release", own.Public, now.Add(time.Hour), time.Time{})
	tampered := own.Bundle(t, image)
	for _, quote := range []string{`"payload":"`, `"payload": "`} {
		tampered = bytes.Replace(tampered, []byte(quote), []byte(quote+"ICAg"), 1) // spaces before the statement
	}

	payload, layer := own.Simple(t, image)
	swapped, _ := own.Simple(t, other)
	lastLog := func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }
	for name, tc := range map[string]struct {
		authority  imagepolicy.Authority
		signatures offered
		reason     imagepolicy.Reason
		text       string
	}{
		"none":                       {own.Authority(), offered{}, imagepolicy.ReasonNoSignature, "no signature of " + image},
		"attestation of the key":     {own.Authority(), bundles(own.Attested(t, image, "https://slsa.dev/provenance/v1")), imagepolicy.ReasonNoSignature, "it has attestations (1), which are not signatures"},
		"attestation, keyless":       {virtual.Authority(false), bundles(virtual.Bundle(image, "https://slsa.dev/provenance/v1", signed.Subject, nil)), imagepolicy.ReasonNoSignature, "which are not signatures"},
		"other digest":               {own.Authority(), bundles(own.Bundle(t, other)), imagepolicy.ReasonSignatureInvalid, "of another image"},
		"other digest, simple":       {own.Authority(), simple(own.Simple(t, other)), imagepolicy.ReasonSignatureInvalid, "of another image"},
		"other digest, keyless":      {virtual.Authority(false), bundles(virtual.Bundle(other, imagepolicy.PredicateType, signed.Subject, nil)), imagepolicy.ReasonSignatureInvalid, "of another image"},
		"another key":                {own.Authority(), bundles(signed.NewPair(t).Bundle(t, image)), imagepolicy.ReasonSignatureInvalid, "the authority release does not accept it"},
		"another key, simple":        {own.Authority(), simple(signed.NewPair(t).Simple(t, image)), imagepolicy.ReasonSignatureInvalid, "the authority release does not accept it"},
		"tampered":                   {own.Authority(), bundles(tampered), imagepolicy.ReasonSignatureInvalid, "does not accept it"},
		"payload swapped":            {own.Authority(), simple([]byte(strings.Replace(string(swapped), other, image, 1)), map[string]string{"dev.cosignproject.cosign/signature": "AAAA"}), imagepolicy.ReasonSignatureInvalid, "does not accept it"},
		"payload tampered":           {own.Authority(), simple([]byte(strings.Replace(string(payload), "registry.example.com", "registry.example.org", 1)), layer), imagepolicy.ReasonSignatureInvalid, "does not accept it"},
		"no annotation":              {own.Authority(), simple(payload, nil), imagepolicy.ReasonSignatureInvalid, "dev.cosignproject.cosign/signature"},
		"no JSON":                    {own.Authority(), bundles([]byte("{")), imagepolicy.ReasonSignatureInvalid, "cannot be read"},
		"too large":                  {own.Authority(), bundles(make([]byte, limits.SignatureBytes+1)), imagepolicy.ReasonSignatureInvalid, "the limit is 262144"},
		"expired":                    {expired, bundles(own.Bundle(t, image)), imagepolicy.ReasonKeyExpired, "valid until"},
		"expired, simple":            {expired, simple(payload, layer), imagepolicy.ReasonKeyExpired, "(notAfter)"},
		"not valid yet":              {future, bundles(own.Bundle(t, image)), imagepolicy.ReasonKeyExpired, "valid from"},
		"foreign identity":           {virtual.Authority(false), bundles(virtual.Bundle(image, imagepolicy.PredicateType, "eve@example.com", nil)), imagepolicy.ReasonIdentityMismatch, "it is by eve@example.com (https://accounts.example.com), which the authority release does not name"},
		"foreign identity, simple":   {virtual.Authority(false), simple(virtual.Simple(image, "eve@example.com")), imagepolicy.ReasonIdentityMismatch, "eve@example.com"},
		"part of an identity":        {virtual.Authority(false, imagepolicy.Identity{Issuer: signed.Issuer, SubjectRegExp: `@example\.com`}), bundles(virtual.Bundle(image, imagepolicy.PredicateType, "eve@example.com.evil", nil)), imagepolicy.ReasonIdentityMismatch, "eve@example.com.evil"},
		"no log entry":               {virtual.Authority(false), bundles(virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, lastLog)), imagepolicy.ReasonSignatureInvalid, "no entry of a transparency log"},
		"another log":                {signed.NewSigstore(t).Authority(false), bundles(virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, nil)), imagepolicy.ReasonSignatureInvalid, "not enough verified log entries"},
		"another authority":          {signed.NewSigstore(t).Authority(true), bundles(virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, nil)), imagepolicy.ReasonSignatureInvalid, "does not accept it"},
		"a certificate for a key":    {own.Authority(), bundles(virtual.Bundle(image, imagepolicy.PredicateType, signed.Subject, nil)), imagepolicy.ReasonIdentityMismatch, "it is by a certificate, and the authority release is a key"},
		"a key for a certificate":    {virtual.Authority(false), bundles(own.Bundle(t, image)), imagepolicy.ReasonIdentityMismatch, "it is by a key, and the authority release is a certificate"},
		"key gone":                   {imagepolicy.Unusable("release", "there is no Secret keys"), bundles(own.Bundle(t, image)), imagepolicy.ReasonTrustRootInvalid, "the authority release cannot be used: there is no Secret keys"},
		"no key":                     {imagepolicy.Key("release", []byte("hello"), time.Time{}, time.Time{}), bundles(own.Bundle(t, image)), imagepolicy.ReasonTrustRootInvalid, "not in PEM form"},
		"a private key for a public": {imagepolicy.Key("release", own.Private, time.Time{}, time.Time{}), bundles(own.Bundle(t, image)), imagepolicy.ReasonTrustRootInvalid, "neither the private key"},
		"no root":                    {imagepolicy.Keyless("release", []imagepolicy.Identity{{Issuer: signed.Issuer, Subject: signed.Subject}}, []byte("{}"), false), offered{}, imagepolicy.ReasonTrustRootInvalid, "trusted_root.json"},
		"no identity":                {imagepolicy.Keyless("release", nil, virtual.Root(), false), offered{}, imagepolicy.ReasonTrustRootInvalid, "names no identity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refusal := verify(t, []imagepolicy.Authority{tc.authority}, tc.signatures, now)
			if refusal == nil {
				t.Fatalf("accepted as %v", got)
			}
			if refusal.Reason != tc.reason || !strings.Contains(refusal.Message, tc.text) {
				t.Errorf("got %s: %s\nwant %s: …%s", refusal.Reason, refusal.Message, tc.reason, tc.text)
			}
			if strings.Contains(refusal.Message, "BEGIN") || strings.Contains(refusal.Message, "\n") {
				t.Errorf("the text quotes a key, or has several lines: %s", refusal.Message)
			}
		})
	}
}

// TestUnread checks that the message counts signatures in the registry that were not read.
func TestUnread(t *testing.T) {
	t.Parallel()
	v := &imagepolicy.Verification{Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()}}
	check, _ := v.Check(image, time.Now())
	for range 3 {
		check.Bundle([]byte("{}"))
	}

	check.TooLarge(1 << 30)
	_, refusal := check.Result(900)
	for _, want := range []string{"none of its 4 signatures", "900 more signatures were not read, because the limit is 100"} {
		require.Contains(t, refusal.Message, want)
	}

	if _, refusal := v.Check("sha256", time.Now()); refusal == nil {
		t.Error("a digest that cannot be read is accepted")
	}
}
