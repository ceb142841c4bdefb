package imagepolicy

import (
	"bytes"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// EmptyConfig is the media type of the configuration of an artifact that has none.
const EmptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"

// Attachment is a bundle as an artifact that refers to an image, in the form of cosign 3. It is a remote.Taggable, once its blobs are
// in the repository.
type Attachment struct {
	Blobs    []v1.Layer
	Digest   v1.Hash
	manifest []byte
}

// NewAttachment returns the artifact of a bundle about an image.
func NewAttachment(bundle []byte, image v1.Descriptor) (*Attachment, error) {
	a := &Attachment{Blobs: []v1.Layer{static.NewLayer([]byte("{}"), EmptyConfig), static.NewLayer(bundle, BundleMediaType)}}
	descriptors := make([]v1.Descriptor, len(a.Blobs))
	for i, blob := range a.Blobs {
		digest, err := blob.Digest()
		if err != nil {
			return nil, err
		}
		size, err := blob.Size()
		if err != nil {
			return nil, err
		}
		mediaType, err := blob.MediaType()
		if err != nil {
			return nil, err
		}
		descriptors[i] = v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}
	}
	var err error
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: BundleMediaType, Config: descriptors[0], Layers: descriptors[1:],
		Annotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", PredicateAnnotation: PredicateType},
		Subject:     &v1.Descriptor{MediaType: image.MediaType, Digest: image.Digest, Size: image.Size},
	})
	if err != nil {
		return nil, err
	}
	a.Digest, _, err = v1.SHA256(bytes.NewReader(a.manifest))
	return a, err
}

// PredicateAnnotation is where an attachment has the predicate type of its bundle.
const PredicateAnnotation = "dev.sigstore.bundle.predicateType"

// RawManifest implements remote.Taggable.
func (a *Attachment) RawManifest() ([]byte, error) { return a.manifest, nil }

// MediaType is that of the manifest.
func (a *Attachment) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
