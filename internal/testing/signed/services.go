package signed

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/digitorus/timestamp"
	"github.com/go-openapi/runtime"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	prototrustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	rekortiles "github.com/sigstore/rekor-tiles/v2/pkg/generated/protobuf"
	rekornote "github.com/sigstore/rekor-tiles/v2/pkg/note"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"golang.org/x/mod/sumdb/note"
	"google.golang.org/protobuf/encoding/protojson"

	"lockstep.run/lockstep/internal/limits"
)

// Paths of the services.
const (
	CertificatePath = "/api/v2/signingCert"
	LogPath         = "/api/v1/log/entries"
	StampPath       = "/api/v1/timestamp"
	NextLogPath     = "/api/v2/log/entries"
)

// approved is the signature of tokens that the certificate authority accepts.
const approved = "c2lnbmF0dXJlLW9mLXRoZS1pc3N1ZXI"

// Token is an OIDC token of Issuer, by which the certificate authority certifies a subject.
func Token(subject string) string { return token(subject, approved) }

// ForgedToken is one that it refuses.
func ForgedToken(subject string) string { return token(subject, "c2lnbmF0dXJlLW9mLWFuLWF0dGFja2Vy") }

func token(subject, by string) string {
	claims := fmt.Appendf(nil, `{"iss":%q,"aud":"sigstore","email":%q,"email_verified":true}`, Issuer, subject)
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims) + "." + by
}

// Services are a Sigstore that is served: a certificate authority, a log and a timestamp authority.
type Services struct {
	Sigstore
	URL string

	authority    *root.FulcioCertificateAuthority
	authorityKey *ecdsa.PrivateKey
	stamps       *root.SigstoreTimestampingAuthority
	stampsKey    *ecdsa.PrivateKey
	nextLogKey   *ecdsa.PrivateKey // of the log of version 2
}

// nextLogHost is in what the log of version 2 signs.
const nextLogHost = "log.example.com"

// NewServices serves one on a loopback address; others answer in the place of its handlers by path.
func NewServices(t testing.TB, others map[string]http.HandlerFunc) *Services {
	t.Helper()
	s := &Services{Sigstore: NewSigstore(t)}
	start, end := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	top, topKey, err := ca.GenerateRootCa()
	must(t, err)
	intermediate, key, err := ca.GenerateFulcioIntermediate(top, topKey)
	must(t, err)
	s.authorityKey = key
	s.authority = &root.FulcioCertificateAuthority{
		Root: top, Intermediates: []*x509.Certificate{intermediate}, ValidityPeriodStart: start, ValidityPeriodEnd: end, URI: "https://fulcio.example.com",
	}
	intermediate, key, err = ca.GenerateTSAIntermediate(top, topKey)
	must(t, err)
	s.stampsKey, err = ecdsa.GenerateKey(Curve, rand.Reader)
	must(t, err)
	leaf, err := ca.GenerateTSALeafCert(time.Now().Add(-5*time.Minute), s.stampsKey, intermediate, key)
	must(t, err)
	s.stamps = &root.SigstoreTimestampingAuthority{
		Root: top, Intermediates: []*x509.Certificate{intermediate}, Leaf: leaf, ValidityPeriodStart: start, ValidityPeriodEnd: end, URI: "https://tsa.example.com",
	}
	s.nextLogKey, err = ecdsa.GenerateKey(Curve, rand.Reader)
	must(t, err)
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*http.Request, []byte) (http.Header, []byte, error){CertificatePath: s.certify, LogPath: s.log, StampPath: s.stamp, NextLogPath: s.nextLog} {
		if other := others[path]; other != nil {
			mux.HandleFunc(path, other)
			continue
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.SigningAnswerBytes))
			var header http.Header
			if err == nil {
				header, body, err = answer(r, body)
			}
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]any{"code": http.StatusBadRequest, "message": err.Error()})
				return
			}
			for name := range header {
				w.Header().Set(name, header.Get(name))
			}
			if path != CertificatePath {
				w.WriteHeader(http.StatusCreated)
			}
			_, _ = w.Write(body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Root is their trusted_root.json.
func (s *Services) Root() []byte {
	s.t.Helper()
	id, err := s.nextLogID()
	must(s.t, err)
	return s.rootWith([]root.CertificateAuthority{s.authority}, []root.TimestampingAuthority{s.stamps}, &root.TransparencyLog{
		BaseURL: "https://" + nextLogHost, ID: id, ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
		HashFunc: crypto.SHA256, PublicKey: s.nextLogKey.Public(), SignatureHashFunc: crypto.SHA256,
	})
}

// Config is their signing config, with the log of a version, if any, and with or without the timestamp authority.
func (s *Services) Config(log uint32, stamps bool) []byte {
	s.t.Helper()
	service := func(path string) []root.Service {
		return []root.Service{{URL: s.URL + path, MajorAPIVersion: 1, ValidityPeriodStart: time.Now().Add(-time.Hour), Operator: "example.com"}}
	}
	one := root.ServiceConfiguration{Selector: prototrustroot.ServiceSelector_ANY}
	logs, authorities := service(""), service(StampPath)
	if logs[0].MajorAPIVersion = log; log == 0 {
		logs = nil
	}
	if !stamps {
		authorities = nil
	}
	config, err := root.NewSigningConfig(root.SigningConfigMediaType02, service(""), nil, logs, one, authorities, one)
	must(s.t, err)
	data, err := config.MarshalJSON()
	must(s.t, err)
	return data
}

// publicOnly is a key pair of which the public key alone is known.
type publicOnly struct{ key crypto.PublicKey }

func (p publicOnly) Public() crypto.PublicKey { return p.key }
func (publicOnly) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, fmt.Errorf("the private key is not here")
}

// certify issues a certificate to the subject of a token, as Fulcio does.
func (s *Services) certify(r *http.Request, body []byte) (http.Header, []byte, error) {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 || parts[2] != approved {
		return nil, nil, fmt.Errorf("There was an error processing the identity token") //nolint:staticcheck // the text of Fulcio
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, nil, err
	}
	var who struct{ Iss, Email string }
	var request struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Content string }
			ProofOfPossession []byte
		}
	}
	if err := json.Unmarshal(claims, &who); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(request.PublicKeyRequest.PublicKey.Content))
	if err != nil {
		return nil, nil, err
	}
	verifier, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		return nil, nil, err
	}
	if err := verifier.VerifySignature(bytes.NewReader(request.PublicKeyRequest.ProofOfPossession), strings.NewReader(who.Email)); err != nil {
		return nil, nil, err
	}
	return s.Certificate(public, who.Email, who.Iss)
}

// Certificate is the answer of the certificate authority about a key.
func (s *Services) Certificate(public crypto.PublicKey, subject, issuer string) (http.Header, []byte, error) {
	leaf, err := ca.GenerateLeafCert(subject, issuer, time.Now().Add(-time.Minute), publicOnly{public}, s.authority.Intermediates[0], s.authorityKey)
	if err != nil {
		return nil, nil, err
	}
	var chain []string
	for _, one := range []*x509.Certificate{leaf, s.authority.Intermediates[0]} {
		chain = append(chain, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})))
	}
	answer, err := json.Marshal(map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{"certificates": chain}}})
	return http.Header{"Content-Type": {"application/json"}}, answer, err
}

// log records an entry, as Rekor does.
func (s *Services) log(r *http.Request, body []byte) (http.Header, []byte, error) {
	proposed, err := models.UnmarshalProposedEntry(bytes.NewReader(body), runtime.JSONConsumer())
	if err != nil {
		return nil, nil, err
	}
	entry, err := types.CreateVersionedEntry(proposed)
	if err != nil {
		return nil, nil, err
	}
	canonical, err := types.CanonicalizeEntry(r.Context(), entry)
	if err != nil {
		return nil, nil, err
	}
	id, err := s.RekorLogID()
	if err != nil {
		return nil, nil, err
	}
	var index int64
	now, text := time.Now().Unix(), base64.StdEncoding.EncodeToString(canonical)
	promise, err := s.RekorSignPayload(tlog.RekorPayload{Body: text, IntegratedTime: now, LogIndex: index, LogID: id})
	if err != nil {
		return nil, nil, err
	}
	proof, err := s.GetInclusionProof(canonical)
	if err != nil {
		return nil, nil, err
	}
	const uuid = "24296fb24b8ad77a"
	answer, err := json.Marshal(models.LogEntry{uuid: {
		Body: text, IntegratedTime: &now, LogID: &id, LogIndex: &index,
		Verification: &models.LogEntryAnonVerification{InclusionProof: proof, SignedEntryTimestamp: promise},
	}})
	return http.Header{"Content-Type": {"application/json"}, "Etag": {uuid}, "Location": {LogPath + "/" + uuid}}, answer, err
}

// nextLogID identifies the log of version 2.
func (s *Services) nextLogID() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(s.nextLogKey.Public())
	id := sha256.Sum256(der)
	return id[:], err
}

// nextLog records an entry, as Rekor of version 2 does, in a log that has no other one.
func (s *Services) nextLog(r *http.Request, body []byte) (http.Header, []byte, error) {
	asked := &rekortiles.CreateEntryRequest{}
	if err := protojson.Unmarshal(body, asked); err != nil {
		return nil, nil, err
	}
	request := asked.GetHashedRekordRequestV002()
	entry, err := protojson.Marshal(&rekortiles.Entry{ApiVersion: "0.0.2", Kind: "hashedrekord", Spec: &rekortiles.Spec{Spec: &rekortiles.Spec_HashedRekordV002{
		HashedRekordV002: &rekortiles.HashedRekordLogEntryV002{
			Data: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: request.GetDigest()}, Signature: request.GetSignature(),
		},
	}}})
	if err != nil {
		return nil, nil, err
	}
	if entry, err = jsoncanonicalizer.Transform(entry); err != nil {
		return nil, nil, err
	}
	leaf := sha256.Sum256(append([]byte{0}, entry...))
	by, err := signature.LoadECDSASignerVerifier(s.nextLogKey, crypto.SHA256)
	if err != nil {
		return nil, nil, err
	}
	signer, err := rekornote.NewNoteSigner(r.Context(), nextLogHost, by)
	if err != nil {
		return nil, nil, err
	}
	checkpoint, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n1\n%s\n", nextLogHost, base64.StdEncoding.EncodeToString(leaf[:]))}, signer)
	if err != nil {
		return nil, nil, err
	}
	id, err := s.nextLogID()
	if err != nil {
		return nil, nil, err
	}
	answer, err := protojson.Marshal(&protorekor.TransparencyLogEntry{
		LogId: &protocommon.LogId{KeyId: id}, KindVersion: &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.2"}, CanonicalizedBody: entry,
		InclusionProof: &protorekor.InclusionProof{TreeSize: 1, RootHash: leaf[:], Checkpoint: &protorekor.Checkpoint{Envelope: string(checkpoint)}},
	})
	return http.Header{"Content-Type": {"application/json"}}, answer, err
}

// stamp says when a signature was there, as timestamp authorities do.
func (s *Services) stamp(_ *http.Request, body []byte) (http.Header, []byte, error) {
	asked, err := timestamp.ParseRequest(body)
	if err != nil {
		return nil, nil, err
	}
	stamp := timestamp.Timestamp{
		HashAlgorithm: asked.HashAlgorithm, HashedMessage: asked.HashedMessage, Time: time.Now(), Nonce: asked.Nonce,
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: asked.Certificates,
	}
	answer, err := stamp.CreateResponseWithOpts(s.stamps.Leaf, s.stampsKey, crypto.SHA256)
	return http.Header{"Content-Type": {"application/timestamp-reply"}}, answer, err
}
