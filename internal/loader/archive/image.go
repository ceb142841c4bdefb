package archive

import (
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
)

// CheckManifest checks the manifest of an image, before the download. It trusts no size: the layers
// are counted again while they are read.
func CheckManifest(m *v1.Manifest) error {
	if n := len(m.Layers); n > limits.ImageLayers {
		return limitError(0, "", "Squash the image.", "the image has %d layers; the limit is %d", n, limits.ImageLayers)
	}

	var total int64
	for i, layer := range m.Layers {
		const remedy = "Build the package image FROM scratch."
		switch size := layer.Size; {
		case !slices.Contains(layerTypes, layer.MediaType):
			return entryError(i+1, "", "Build the image with kubectl package build.", "the media type %.100q does not belong to a file system layer", layer.MediaType)
		case len(layer.URLs) > 0:
			return entryError(i+1, "", remedy, "the layer is stored outside the registry")
		case size < 0:
			return &Error{Kind: KindCorrupt, Layer: i + 1, Details: fmt.Sprintf("the layer declares %d bytes", size)}
		case size > limits.LayerBytes:
			return limitError(i+1, "", remedy, "the layer has %d bytes; the limit is %d", size, limits.LayerBytes)
		default:
			total += size
		}
	}

	if total > limits.ImageBytes {
		return limitError(0, "", "Build the package image FROM scratch.", "the layers have %d bytes; the limit is %d", total, limits.ImageBytes)
	}

	return nil
}

// layerTypes are the media types of layers of a file system. Signatures and attestations are images
// with other layers.
var layerTypes = []types.MediaType{
	"application/vnd.docker.image.rootfs.diff.tar.zstd", // containerd's, for a Docker image
	types.DockerLayer, types.DockerUncompressedLayer, types.OCILayer, types.OCILayerZStd, types.OCIUncompressedLayer,
}
