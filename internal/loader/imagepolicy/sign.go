package imagepolicy

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// BundleMediaType is that of the bundles that Sign makes.
const BundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Signer makes signatures of images by a private key.
type Signer struct {
	signer    signature.Signer
	algorithm signature.AlgorithmDetails
	hint      string
}

// NewSigner reads a private key in PEM, also one of cosign that is encrypted, for which password is called.
func NewSigner(privateKey []byte, password func() ([]byte, error)) (*Signer, error) {
	var asked error
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(privateKey, func(bool) ([]byte, error) {
		text, err := password()
		asked = err
		return text, err
	})
	switch {
	case asked != nil:
		return nil, asked
	case err != nil:
		return nil, errors.New("it is no private key in PEM form, or the password is wrong: write one of cosign generate-key-pair, or of openssl genpkey")
	}
	key, ok := private.(crypto.Signer)
	if !ok {
		return nil, errors.New("keys of its kind do not sign")
	}
	if _, err := verifierOf(key.Public()); err != nil {
		return nil, err
	}
	signer, err := signature.LoadDefaultSigner(private)
	if err != nil {
		return nil, errors.New("keys of its kind do not sign images; write an ECDSA, RSA or Ed25519 key")
	}
	algorithm, err := signature.GetDefaultAlgorithmDetails(key.Public())
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return &Signer{signer: signer, algorithm: algorithm, hint: base64.StdEncoding.EncodeToString(sum[:])}, nil
}

// IsECDSAP256 reports whether the key is one of ECDSA on P-256, whose signatures are of SHA-256; the hash depends on the key.
func (s *Signer) IsECDSAP256() bool {
	return s.algorithm.GetSignatureAlgorithm() == protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

// Sign returns a bundle with a signature of the image with a digest.
func (s *Signer) Sign(digest string) ([]byte, error) {
	payload, err := Statement(digest)
	if err != nil {
		return nil, err
	}
	signed, _, err := s.bundle(&sign.DSSEData{Data: payload, PayloadType: bundle.IntotoMediaType})
	return signed, err
}

// Statement returns the in-toto statement that is signed for an image with a digest, as cosign makes it.
func Statement(digest string) ([]byte, error) {
	algorithm, hash, ok := strings.Cut(digest, ":")
	if !ok {
		return nil, fmt.Errorf("%q is no digest", digest)
	}
	return json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": []any{map[string]any{"digest": map[string]string{algorithm: hash}}},
		"predicateType": PredicateType, "predicate": map[string]any{},
	})
}

// SignBlob returns a signature of content as cosign sign-blob makes it, also in a bundle.
func (s *Signer) SignBlob(content []byte) (inBundle, raw []byte, err error) {
	return s.bundle(&sign.PlainData{Data: content})
}

func (s *Signer) bundle(content sign.Content) (data, raw []byte, err error) {
	if raw, err = s.signer.SignMessage(bytes.NewReader(content.PreAuthEncoding())); err != nil {
		return nil, nil, fmt.Errorf("sign: %w", err)
	}
	signed := &protobundle.Bundle{MediaType: BundleMediaType, VerificationMaterial: &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: s.hint}},
	}}
	// Ed25519 has no hash of its own, and the bundle needs one.
	hash := cmp.Or(s.algorithm.GetHashType(), crypto.SHA256).New()
	hash.Write(content.PreAuthEncoding())
	content.Bundle(signed, raw, hash.Sum(nil), cmp.Or(s.algorithm.GetProtoHashType(), protocommon.HashAlgorithm_SHA2_256))
	b, err := bundle.NewBundle(signed)
	if err != nil {
		return nil, nil, err
	}
	data, err = b.MarshalJSON()
	return data, raw, err
}

// SignsImage returns an error unless a bundle says of an image with a digest that it is signed. It does not verify the signature.
func SignsImage(data []byte, digest string) error {
	b := &bundle.Bundle{}
	if err := b.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("it is no Sigstore bundle: %w", err)
	}
	stated := statementOf(b)
	switch {
	case stated == nil:
		return errors.New("it signs no image")
	case !stated.names(digest):
		return fmt.Errorf("it signs another image than %s", digest)
	}
	return nil
}
