// Package imagetest has a registry and images for tests, and reads images that tests have built.
package imagetest

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

// ServeRegistry starts a registry without TLS and returns its host.
func ServeRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// PushRandom pushes an image that is not a package and returns its digest.
func PushRandom(t *testing.T, ref string) string {
	t.Helper()
	image, err := random.Image(64, 1)
	require.NoError(t, err)
	parsed, err := name.ParseReference(ref, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(parsed, image))
	digest, err := image.Digest()
	require.NoError(t, err)
	return digest.String()
}

// Files returns the files of the package in an image.
func Files(t *testing.T, img v1.Image) archive.Files {
	t.Helper()
	layers, err := img.Layers()
	require.NoError(t, err)
	u := archive.NewUnpacker(archive.Selection{})
	for _, layer := range layers {
		r, err := layer.Compressed()
		require.NoError(t, err)
		require.NoError(t, u.Layer(t.Context(), r))
		require.NoError(t, r.Close())
	}
	return u.Files()
}
