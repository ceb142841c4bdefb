package imagepolicy_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/signed"
)

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
		if !strings.Contains(refusal.Message, want) {
			t.Errorf("%q lacks %q", refusal.Message, want)
		}
	}

	if _, refusal := v.Check("sha256", time.Now()); refusal == nil {
		t.Error("a digest that cannot be read is accepted")
	}
}
