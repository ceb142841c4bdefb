package imagepolicy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
)

// simpleSigningType is the type that the payload states.
const simpleSigningType = "cosign container image signature"

// These are annotations of a layer with a payload of simple signing.
const (
	signatureAnnotation   = "dev.cosignproject.cosign/signature"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	logEntryAnnotation    = "dev.sigstore.cosign/bundle"
	timestampAnnotation   = "dev.sigstore.cosign/rfc3161timestamp"
)

// simpleBundle converts a signature of cosign 2 to a bundle. Intermediate certificates come from
// the trusted root.
func simpleBundle(payload []byte, annotations map[string]string) (*bundle.Bundle, error) {
	signature, err := base64.StdEncoding.DecodeString(annotations[signatureAnnotation])
	if err != nil || len(signature) == 0 {
		return nil, errors.New("its layer has no annotation " + signatureAnnotation + " that can be read")
	}

	sum := sha256.Sum256(payload)
	material := &protobundle.VerificationMaterial{}
	if text := annotations[certificateAnnotation]; text == "" {
		material.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}
	} else {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("its certificate is not in PEM form")
		}
		material.Content = &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: block.Bytes}}
	}

	if text := annotations[logEntryAnnotation]; text != "" {
		entry, err := logEntry([]byte(text))
		if err != nil {
			return nil, err
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}

	if text := annotations[timestampAnnotation]; text != "" {
		var stamp struct{ SignedRFC3161Timestamp []byte }
		if err := json.Unmarshal([]byte(text), &stamp); err != nil {
			return nil, errors.New("its timestamp cannot be read")
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp.SignedRFC3161Timestamp}},
		}
	}

	b, err := bundle.NewBundle(&protobundle.Bundle{
		// Later versions of bundles require a proof of inclusion, which signatures of cosign 2
		// lack.
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1", VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: signature,
		}},
	})
	if err != nil {
		return nil, errors.New("its annotations cannot be read")
	}

	return b, nil
}

// logEntry reads a transparency log's promise of inclusion.
func logEntry(text []byte) (*protorekor.TransparencyLogEntry, error) {
	var entry struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}

	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	unreadable := errors.New("its entry of a transparency log cannot be read")
	if json.Unmarshal(text, &entry) != nil || json.Unmarshal(entry.Payload.Body, &kind) != nil {
		return nil, unreadable
	}

	id, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil || len(id) == 0 {
		return nil, unreadable
	}

	return &protorekor.TransparencyLogEntry{
		LogIndex: entry.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: id}, IntegratedTime: entry.Payload.IntegratedTime,
		KindVersion:      &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion},
		InclusionPromise: &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp}, CanonicalizedBody: entry.Payload.Body,
	}, nil
}
