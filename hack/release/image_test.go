package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"lockstep.run/lockstep/test/require"
)

// layoutOf writes the layout of two programs into a folder, and returns the release with its
// digest.
func layoutOf(t *testing.T, folder string, change func(*release)) *release {
	t.Helper()
	r := &release{version: "v1.2.3", commit: "abc", created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	change(r)
	require.NoError(t, r.writeLayout(folder, map[string][]byte{"amd64": []byte("program for amd64"), "arm64": []byte("program for arm64")}))
	return r
}

func same(*release) {}

func TestLayout(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other := filepath.Join(folder, "thesis.txt")
	require.NoError(t, os.WriteFile(other, []byte("x"), 0o600))
	layoutOf(t, folder, func(r *release) { r.version = "v1" })
	r := layoutOf(t, folder, same) // no file of the first one stays
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}

	root, err := layout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	manifest, err := root.IndexManifest()
	require.NoError(t, err)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d entries, want 1", len(manifest.Manifests))
	}

	entry := manifest.Manifests[0]
	if entry.Digest.String() != r.digest || entry.MediaType != types.OCIImageIndex || entry.Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Errorf("the layout holds %+v, want %s", entry, r.digest)
	}

	index, err := root.ImageIndex(entry.Digest)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err = index.IndexManifest()
	require.NoError(t, err)
	var platforms []string
	for _, entry := range manifest.Manifests {
		platforms = append(platforms, entry.Platform.String())
		image, err := index.Image(entry.Digest)
		require.NoError(t, err)
		checkImage(t, image, entry.Platform.Architecture)
	}

	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("platforms are %v, want %v", platforms, want)
	}
}

func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	require.NoError(t, err)
	if config.Architecture != arch || config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/lockstep-manager"}) {
		t.Errorf("the config is %+v", config)
	}

	manifest, err := image.Manifest()
	require.NoError(t, err)
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("the manifest is %+v", manifest)
	}

	layers, err := image.Layers()
	require.NoError(t, err)
	stream, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer stream.Close()
	files := untar(t, stream)
	if files["lockstep-manager"] != "program for "+arch {
		t.Errorf("the program is %q", files["lockstep-manager"])
	}

	want := []string{"lockstep-manager", "tmp/", "var/", "var/cache/", "var/cache/lockstep/"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
}

func TestSameContentSameDigest(t *testing.T) {
	t.Parallel()
	first := layoutOf(t, t.TempDir(), same).digest
	if again := layoutOf(t, t.TempDir(), same).digest; again != first {
		t.Errorf("the same content gives %s and %s", first, again)
	}
	if layoutOf(t, t.TempDir(), func(r *release) { r.version = "v2" }).digest == first {
		t.Error("another version gives the same digest")
	}
}
