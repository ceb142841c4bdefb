// Package imagetest reads images that tests have built.
package imagetest

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

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
