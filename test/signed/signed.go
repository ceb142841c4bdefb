// Package signed makes signatures of images like cosign, with keys and with certificates of an
// in-memory Sigstore.
package signed

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Subject and Issuer of the certificates that Authority accepts.
const (
	Subject = "release@example.com"
	Issuer  = "https://accounts.example.com"
)

// Pair is a key pair in PEM.
type Pair struct {
	private crypto.Signer
	Private []byte
	Public  []byte
}

// NewPair returns a key pair like cosign generate-key-pair.
func NewPair(t testing.TB) Pair {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	secret, err := cryptoutils.MarshalPrivateKeyToPEM(private)
	if err != nil {
		t.Fatal(err)
	}

	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	if err != nil {
		t.Fatal(err)
	}

	return Pair{private: private, Private: secret, Public: public}
}

// Authority returns the authority that accepts it.
func (p Pair) Authority() imagepolicy.Authority {
	return imagepolicy.Key("release", p.Public, time.Time{}, time.Time{})
}

// Bundle returns the bundle that cosign 3 attaches.
func (p Pair) Bundle(t testing.TB, digest string) []byte {
	t.Helper()
	return p.Attested(t, digest, imagepolicy.PredicateType)
}

// Sign attaches a signature to the image that a tag leads to now, and returns its digest.
func (p Pair) Sign(t testing.TB, tag string) string {
	t.Helper()
	ref, err := name.NewTag(tag, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Head(ref)
	if err != nil {
		t.Fatal(err)
	}
	digest := image.Digest.String()
	Attach(t, ref.Context(), digest, p.Bundle(t, digest))
	return digest
}

func payloadOf(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.example.com/shop"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

func statementOf(t testing.TB, digest, predicate string) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": map[string]any{},
		"subject": []any{map[string]any{"digest": map[string]string{"sha256": digest[len("sha256:"):]}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Simple returns the payload that cosign 2 signs, with its annotations.
func (p Pair) Simple(t testing.TB, digest string) (payload []byte, annotations map[string]string) {
	t.Helper()
	signer, err := signature.LoadDefaultSigner(p.private)
	if err != nil {
		t.Fatal(err)
	}
	payload = payloadOf(digest)
	raw, err := signer.SignMessage(bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	return payload, map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(raw)}
}

// Attested is a bundle of an envelope with a predicate.
func (p Pair) Attested(t testing.TB, digest, predicate string) []byte {
	t.Helper()
	payload := statementOf(t, digest, predicate)
	signer, err := signature.LoadDefaultSigner(p.private)
	if err != nil {
		t.Fatal(err)
	}

	const typ = "application/vnd.in-toto+json"
	raw, err := signer.SignMessage(bytes.NewReader(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(typ), typ, len(payload), payload)))
	if err != nil {
		t.Fatal(err)
	}

	return marshal(t, &protobundle.Bundle{
		MediaType: imagepolicy.BundleMediaType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: typ, Signatures: []*protodsse.Signature{{Sig: raw}},
		}},
	})
}

func marshal(t testing.TB, b *protobundle.Bundle) []byte {
	t.Helper()
	data, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Sigstore issues certificates and keeps a log, like Sigstore.
type Sigstore struct {
	*ca.VirtualSigstore
	t testing.TB
}

// NewSigstore returns a Sigstore with its own keys.
func NewSigstore(t testing.TB) Sigstore {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return Sigstore{virtual, t}
}

// Root is its trusted_root.json.
func (s Sigstore) Root() []byte {
	s.t.Helper()
	logs := map[string]*root.TransparencyLog{}
	for id, log := range s.RekorLogs() {
		raw, err := hex.DecodeString(id)
		if err != nil {
			s.t.Fatal(err)
		}
		log.ID = raw
		logs[id] = log
	}

	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.FulcioCertificateAuthorities(), nil, s.TimestampingAuthorities(), logs)
	if err != nil {
		s.t.Fatal(err)
	}

	data, err := trusted.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}

	return data
}

// Authority accepts identities, by default Subject of Issuer.
func (s Sigstore) Authority(ignoreLog bool, identities ...imagepolicy.Identity) imagepolicy.Authority {
	if len(identities) == 0 {
		identities = []imagepolicy.Identity{{Issuer: Issuer, Subject: Subject}}
	}
	return imagepolicy.Keyless("release", identities, s.Root(), ignoreLog)
}

// Bundle returns the bundle that cosign 3 attaches.
func (s Sigstore) Bundle(digest, predicate, subject string, change func(*protobundle.Bundle)) []byte {
	s.t.Helper()
	entity, err := s.AttestAtTime(subject, Issuer, statementOf(s.t, digest, predicate), time.Now().Add(5*time.Minute), true)
	if err != nil {
		s.t.Fatal(err)
	}

	signed, err := entity.SignatureContent()
	if err != nil {
		s.t.Fatal(err)
	}

	envelope := signed.EnvelopeContent().RawEnvelope()
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		s.t.Fatal(err)
	}

	b := &protobundle.Bundle{
		MediaType: imagepolicy.BundleMediaType, VerificationMaterial: s.material(entity),
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: envelope.PayloadType, Signatures: []*protodsse.Signature{{Sig: signed.Signature()}},
		}},
	}
	if change != nil {
		change(b)
	}

	return marshal(s.t, b)
}

func (s Sigstore) material(entity *ca.TestEntity) *protobundle.VerificationMaterial {
	s.t.Helper()
	content, err := entity.VerificationContent()
	if err != nil {
		s.t.Fatal(err)
	}

	material := &protobundle.VerificationMaterial{
		Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw}},
		TimestampVerificationData: &protobundle.TimestampVerificationData{},
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		s.t.Fatal(err)
	}

	for _, entry := range entries {
		wire := entry.TransparencyLogEntry()
		wire.KindVersion = kindOf(s.t, wire.CanonicalizedBody)
		wire.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: s.promise(wire)}
		material.TlogEntries = append(material.TlogEntries, wire)
	}

	stamps, err := entity.Timestamps()
	if err != nil {
		s.t.Fatal(err)
	}

	for _, stamp := range stamps {
		material.TimestampVerificationData.Rfc3161Timestamps = append(material.TimestampVerificationData.Rfc3161Timestamps,
			&protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}

	return material
}

// promise is the signature of the log over an entry.
func (s Sigstore) promise(wire *protorekor.TransparencyLogEntry) []byte {
	s.t.Helper()
	signed, err := s.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(wire.CanonicalizedBody), IntegratedTime: wire.IntegratedTime, LogIndex: wire.LogIndex,
		LogID: hex.EncodeToString(wire.LogId.KeyId),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return signed
}

func kindOf(t testing.TB, body []byte) *protorekor.KindVersion {
	t.Helper()
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(body, &kind); err != nil {
		t.Fatal(err)
	}
	return &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion}
}

// Simple returns the payload and annotations that cosign 2 attaches.
func (s Sigstore) Simple(digest, subject string) (payload []byte, annotations map[string]string) {
	s.t.Helper()
	payload = payloadOf(digest)
	entity, err := s.Sign(subject, Issuer, payload)
	if err != nil {
		s.t.Fatal(err)
	}

	signed, err := entity.SignatureContent()
	if err != nil {
		s.t.Fatal(err)
	}

	material := s.material(entity)
	content, err := entity.VerificationContent()
	if err != nil {
		s.t.Fatal(err)
	}

	certificate, err := cryptoutils.MarshalCertificateToPEM(content.Certificate())
	if err != nil {
		s.t.Fatal(err)
	}

	wire := material.TlogEntries[0]
	promise, err := json.Marshal(map[string]any{
		"SignedEntryTimestamp": wire.InclusionPromise.SignedEntryTimestamp,
		"Payload": map[string]any{
			"body": wire.CanonicalizedBody, "integratedTime": wire.IntegratedTime, "logIndex": wire.LogIndex, "logID": hex.EncodeToString(wire.LogId.KeyId),
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return payload, map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signed.Signature()),
		"dev.sigstore.cosign/certificate":    string(certificate),
		"dev.sigstore.cosign/bundle":         string(promise),
	}
}

// Attach puts a bundle next to an image, like cosign 3.
func Attach(t testing.TB, repository name.Repository, digest string, bundle []byte, options ...remote.Option) {
	t.Helper()
	image, err := remote.Head(repository.Digest(digest), options...)
	if err != nil {
		t.Fatal(err)
	}

	config, content := static.NewLayer([]byte("{}"), imagepolicy.EmptyConfig), static.NewLayer(bundle, imagepolicy.BundleMediaType)
	manifest := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: imagepolicy.BundleMediaType,
		Config: push(t, repository, config, options), Layers: []v1.Descriptor{push(t, repository, content, options)},
		Annotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", imagepolicy.PredicateAnnotation: imagepolicy.PredicateType},
		Subject:     &v1.Descriptor{MediaType: image.MediaType, Digest: image.Digest, Size: image.Size},
	}

	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}

	own, _, err := v1.SHA256(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Put(repository.Digest(own.String()), artifact(text), options...); err != nil {
		t.Fatal(err)
	}
}

// artifact is a manifest as it is pushed.
type artifact []byte

func (a artifact) RawManifest() ([]byte, error)      { return a, nil }
func (artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// push pushes a blob.
func push(t testing.TB, repository name.Repository, blob v1.Layer, options []remote.Option) v1.Descriptor {
	t.Helper()
	if err := remote.WriteLayer(repository, blob, options...); err != nil {
		t.Fatal(err)
	}
	descriptor, err := partial.Descriptor(blob)
	if err != nil {
		t.Fatal(err)
	}
	return *descriptor
}

// AttachSimple puts payloads of simple signing at the tag next to an image, like cosign 2.
func AttachSimple(t testing.TB, repository name.Repository, digest string, payload []byte, annotations map[string]string, options ...remote.Option) {
	t.Helper()
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"), Annotations: annotations,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(repository.Tag(strings.Replace(digest, ":", "-", 1)+".sig"), image, options...); err != nil {
		t.Fatal(err)
	}
}
