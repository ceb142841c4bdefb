package imagepolicy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

const signatureErrorBytes = 200 // of a library's text about a signature, which can quote the signature's author

// PredicateType is the predicate type of the statement that cosign signs an image with. All others
// belong to attestations.
const PredicateType = "https://sigstore.dev/cosign/sign/v1"

// Signatures of cosign 3 are artifacts that refer to an image. Each has a bundle, with
// PredicateType in an annotation, and an empty configuration.
const (
	BundleMediaType                     = "application/vnd.dev.sigstore.bundle.v0.3+json"
	PredicateAnnotation                 = "dev.sigstore.bundle.predicateType"
	EmptyConfig         types.MediaType = "application/vnd.oci.empty.v1+json"
)

// Verified is the signer of an image.
type Verified struct {
	// Authority accepted the signature, and Policy is its ImageConfig; empty for keys of a command
	// line.
	Authority, Policy string
	// Subject and Issuer come from the certificate; empty for a key.
	Subject, Issuer string
}

// String names the authority and the identity.
func (v *Verified) String() string {
	text := "Signed by the authority " + v.Authority
	if v.Policy != "" {
		text += " of the ImageConfig " + v.Policy
	}
	if v.Subject != "" {
		text += fmt.Sprintf(" as %s (%s)", printable(v.Subject, limits.IdentityBytes), printable(v.Issuer, limits.IdentityBytes))
	}
	return text + "."
}

// Check verifies signatures of one image until one is good.
type Check struct {
	verification *Verification
	algorithm    string
	digest       []byte
	text         string
	now          time.Time

	verified *Verified
	// attestations only explain the refusal of an image that has no signature.
	attestations int
	failures     []failure
}

// failure is why a signature does not suffice.
type failure struct {
	reason Reason
	text   string
}

// Check starts the verification of an image by its digest.
func (v *Verification) Check(digest string, now time.Time) (*Check, *Refusal) {
	algorithm, hash, _ := strings.Cut(digest, ":")
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) == 0 {
		return nil, &Refusal{Reason: ReasonSignatureInvalid, Message: "its digest cannot be read"}
	}
	return &Check{verification: v, algorithm: algorithm, digest: raw, text: digest, now: now}, nil
}

// statement has the fields of an in-toto statement that matter before its signature is verified.
type statement struct {
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// statementOf returns a bundle's statement about an image, or nil if it is not an image signature.
func statementOf(b *bundle.Bundle) *statement {
	envelope, err := b.Envelope()
	if err != nil {
		return nil
	}
	payload, err := envelope.DecodeB64Payload()
	stated := &statement{}
	if err != nil || json.Unmarshal(payload, stated) != nil || stated.PredicateType != PredicateType {
		return nil
	}
	return stated
}

// names reports whether an image is among the subjects.
func (s *statement) names(digest string) bool {
	algorithm, hash, _ := strings.Cut(digest, ":")
	for _, subject := range s.Subject {
		if hash != "" && subject.Digest[algorithm] == hash {
			return true
		}
	}
	return false
}

// Bundle verifies a Sigstore bundle, and reports whether it suffices.
func (c *Check) Bundle(data []byte) bool {
	if len(data) > limits.SignatureBytes {
		c.TooLarge(int64(len(data)))
		return false
	}

	return c.guarded(func() bool {
		b := &bundle.Bundle{}
		if err := b.UnmarshalJSON(data); err != nil {
			return c.fail("its bundle cannot be read")
		}
		stated := statementOf(b)
		if stated == nil {
			c.Attestation()
			return false
		}
		// The library checks this as well, but its error does not tell a signature of another image
		// from an invalid one.
		if !stated.names(c.algorithm + ":" + hex.EncodeToString(c.digest)) {
			return c.fail("it is a signature of another image")
		}
		return c.entity(b, func() verify.ArtifactPolicyOption { return verify.WithArtifactDigest(c.algorithm, c.digest) })
	})
}

// Simple verifies a payload of simple signing with the annotations of its layer, and reports
// whether it suffices.
func (c *Check) Simple(payload []byte, annotations map[string]string) bool {
	if len(payload) > limits.SignatureBytes {
		c.TooLarge(int64(len(payload)))
		return false
	}

	return c.guarded(func() bool {
		var stated struct {
			Critical struct {
				Image struct {
					Digest string `json:"docker-manifest-digest"`
				} `json:"image"`
				Type string `json:"type"`
			} `json:"critical"`
		}
		switch err := json.Unmarshal(payload, &stated); {
		case err != nil || stated.Critical.Type != simpleSigningType:
			return c.fail("its payload is not a simple signing payload")
		case stated.Critical.Image.Digest != c.text:
			return c.fail("it is a signature of another image")
		}
		b, err := simpleBundle(payload, annotations)
		if err != nil {
			return c.fail(err.Error())
		}
		return c.entity(b, func() verify.ArtifactPolicyOption { return verify.WithArtifact(bytes.NewReader(payload)) })
	})
}

// TooLarge counts a signature that is not read because it exceeds the limit.
func (c *Check) TooLarge(size int64) {
	c.fail(fmt.Sprintf("it has %d bytes; the limit is %d", size, limits.SignatureBytes))
}

// Unreadable counts a signature that has an invalid form in the registry.
func (c *Check) Unreadable(why string) {
	c.fail(printable(why, signatureErrorBytes))
}

// guarded turns a panic over foreign input into a failure.
func (c *Check) guarded(try func() bool) (good bool) {
	err := panics.Guard(context.Background(), "verifying a signature", func() error {
		good = try()
		return nil
	})
	if err != nil {
		return c.fail("it cannot be verified: " + err.Error())
	}
	return good
}

// fail counts an invalid signature, and returns false.
func (c *Check) fail(text string) bool {
	c.failures = append(c.failures, failure{ReasonSignatureInvalid, text})
	return false
}

// Attestation counts an attestation.
func (c *Check) Attestation() { c.attestations++ }

// entity tries each authority. artifact is the signed content, which can be read only once.
func (c *Check) entity(b *bundle.Bundle, artifact func() verify.ArtifactPolicyOption) bool {
	content, err := b.VerificationContent()
	if err != nil {
		return c.fail("its certificate or key cannot be read")
	}

	byCertificate := content.Certificate() != nil
	var failures []failure
	for i := range c.verification.Authorities {
		a := &c.verification.Authorities[i]
		switch {
		case a.problem != "":
			continue
		case byCertificate != (a.keyless != nil):
			what := map[bool]string{true: "a certificate", false: "a key"}
			failures = append(failures, failure{ReasonIdentityMismatch, fmt.Sprintf("it is by %s, and the authority %s is %s", what[byCertificate], a.Name, what[!byCertificate])})
			continue
		}
		verified, failed := a.try(b, artifact(), c.now)
		if failed == nil {
			c.verified = verified
			return true
		}
		failures = append(failures, *failed)
	}

	// Each signature has the result of the authority of its own kind.
	if len(failures) > 0 {
		c.failures = append(c.failures, slices.MaxFunc(failures, func(a, b failure) int { return cmp.Compare(byKind(a), byKind(b)) }))
	}

	return false
}

// byKind ranks failures, with an authority of another kind last.
func byKind(f failure) int {
	if f.reason == ReasonIdentityMismatch && strings.HasPrefix(f.text, "it is by a ") {
		return -1
	}
	return slices.Index(ranks, f.reason)
}

// ranks are the reasons, from the least to the most specific one.
var ranks = []Reason{ReasonNoSignature, ReasonSignatureInvalid, ReasonIdentityMismatch, ReasonKeyExpired, ReasonTrustRootInvalid}

// Result returns the signer, or why no signature is good. unread is the minimum number of
// signatures that were not read.
func (c *Check) Result(unread int) (*Verified, *Refusal) {
	if c.verified != nil {
		return c.verified, nil
	}

	// An unusable authority might have accepted the signature, so it is reported before anything
	// else.
	for i := range c.verification.Authorities {
		if a := &c.verification.Authorities[i]; a.problem != "" {
			return nil, &Refusal{Reason: ReasonTrustRootInvalid, Message: fmt.Sprintf("the authority %s cannot be used: %s", a.Name, a.problem)}
		}
	}

	refusal := &Refusal{Reason: ReasonNoSignature, Message: "the registry has no signature of " + c.text}
	if c.attestations > 0 {
		refusal.Message += fmt.Sprintf("; it has attestations (%d), which are not signatures", c.attestations)
	}

	if len(c.failures) > 0 {
		worst := slices.MaxFunc(c.failures, func(a, b failure) int {
			return cmp.Compare(slices.Index(ranks, a.reason), slices.Index(ranks, b.reason))
		})
		refusal.Reason, refusal.Message = worst.reason, "its signature does not suffice: "+worst.text
		if n := len(c.failures); n > 1 {
			refusal.Message = fmt.Sprintf("none of its %d signatures suffices; one of them: %s", n, worst.text)
		}
	}

	if unread > 0 {
		refusal.Message += fmt.Sprintf("; at least %d more signatures were not read, because the limit is %d", unread, limits.Signatures)
	}

	return nil, refusal
}

// try verifies a signature by one authority. It first accepts any identity, to distinguish a bad
// signature from a good one with another identity or an expired key.
func (a *Authority) try(b *bundle.Bundle, artifact verify.ArtifactPolicyOption, now time.Time) (*Verified, *failure) {
	options, failed := a.options(b)
	if failed != nil {
		return nil, failed
	}

	verifier, err := verify.NewVerifier(a.material, options...)
	if err != nil {
		return nil, &failure{ReasonTrustRootInvalid, fmt.Sprintf("the authority %s cannot be used: %s", a.Name, brief(err))}
	}

	who := verify.WithoutIdentitiesUnsafe()
	if a.keyless == nil {
		who = verify.WithKey()
	}

	result, err := verifier.Verify(b, verify.NewPolicy(artifact, who))
	switch {
	case err != nil:
		return nil, &failure{ReasonSignatureInvalid, fmt.Sprintf("the authority %s does not accept it: %s", a.Name, brief(err))}
	case result.Statement != nil && result.Statement.GetPredicateType() != PredicateType:
		return nil, &failure{ReasonSignatureInvalid, "it is an attestation"}
	case a.keyless == nil && now.Before(a.notBefore):
		return nil, &failure{ReasonKeyExpired, fmt.Sprintf("it is by the key of the authority %s, which is valid from %s (notBefore)", a.Name, stamp(a.notBefore))}
	case a.keyless == nil && !a.valid(now):
		return nil, &failure{ReasonKeyExpired, fmt.Sprintf("it is by the key of the authority %s, which is valid until %s (notAfter)", a.Name, stamp(a.notAfter))}
	case a.keyless == nil:
		return &Verified{Authority: a.Name}, nil
	}

	subject := *result.Signature.Certificate
	// Expressions are matched with values of bounded length only.
	named := len(subject.SubjectAlternativeName) <= limits.IdentityBytes && len(subject.Issuer) <= limits.IdentityBytes
	if named {
		_, err = a.keyless.identities.Verify(subject)
	}
	if !named || err != nil {
		return nil, &failure{ReasonIdentityMismatch, fmt.Sprintf("it is by %s (%s), which the authority %s does not name",
			printable(subject.SubjectAlternativeName, signatureErrorBytes), printable(subject.Issuer, signatureErrorBytes), a.Name)}
	}

	return &Verified{Authority: a.Name, Subject: subject.SubjectAlternativeName, Issuer: subject.Issuer}, nil
}

// options are the requirements on a signature besides a trusted key or certificate.
func (a *Authority) options(b *bundle.Bundle) ([]verify.VerifierOption, *failure) {
	options := []verify.VerifierOption{verify.WithoutStatementPredicate()}
	if a.keyless == nil {
		return append(options, verify.WithNoObserverTimestamps()), nil
	}
	// If the trusted root has logs of certificates, the certificate has to be in one of them.
	if len(a.material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}

	material := b.GetVerificationMaterial()
	if a.keyless.ignoreLog {
		if len(material.GetTimestampVerificationData().GetRfc3161Timestamps()) > 0 && len(a.material.TimestampingAuthorities()) > 0 {
			return append(options, verify.WithSignedTimestamps(1)), nil
		}
		// Neither a log nor a timestamp proves when the image was signed, so the certificate has to
		// be valid now.
		return append(options, verify.WithCurrentTime()), nil
	}

	if len(material.GetTlogEntries()) == 0 {
		return nil, &failure{ReasonSignatureInvalid, fmt.Sprintf("it has no entry of a transparency log, which the authority %s requires", a.Name)}
	}

	return append(options, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)), nil
}

// brief shortens a library's text, part of it possibly from the signature's author.
func brief(err error) string {
	for errors.Unwrap(err) != nil && len(err.Error()) > signatureErrorBytes {
		err = errors.Unwrap(err)
	}
	return printable(err.Error(), signatureErrorBytes)
}

// printable turns foreign text into one line.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
