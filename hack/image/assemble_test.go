package main

import (
	"archive/tar"
	"bytes"
	"io"
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

func example() content {
	return content{
		version: "v1.2.3", revision: "abc", created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		architectures: architectures, programs: map[string][]byte{"amd64": []byte("program for amd64"), "arm64": []byte("program for arm64")},
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "image")
	index, err := assemble(example())
	require.NoError(t, err)
	digest, err := write(index, path, example())
	require.NoError(t, err)
	// Again into the same folder: nothing of the first run is left over.
	if _, err := write(index, path, example()); err != nil {
		t.Fatal(err)
	}
	root, err := layout.ImageIndexFromPath(path)
	require.NoError(t, err)
	manifest, err := root.IndexManifest()
	require.NoError(t, err)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d entries, want 1", len(manifest.Manifests))
	}
	entry := manifest.Manifests[0]
	if entry.Digest != digest || entry.MediaType != types.OCIImageIndex {
		t.Errorf("the layout holds %s %s, want %s", entry.MediaType, entry.Digest, digest)
	}
	if got := entry.Annotations["org.opencontainers.image.ref.name"]; got != "v1.2.3" {
		t.Errorf("the reference is %q, want v1.2.3", got)
	}
	stored, err := root.ImageIndex(digest)
	require.NoError(t, err)
	if err := validate.Index(stored); err != nil {
		t.Error(err)
	}
	checkImages(t, stored)
}

func checkImages(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	manifest, err := index.IndexManifest()
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
	file, err := image.ConfigFile()
	require.NoError(t, err)
	if file.Architecture != arch || file.OS != "linux" {
		t.Errorf("the config is for %s/%s, want linux/%s", file.OS, file.Architecture, arch)
	}
	if file.Config.User != "65532:65532" || !slices.Equal(file.Config.Entrypoint, []string{"/lockstep-manager"}) {
		t.Errorf("user %s runs %v", file.Config.User, file.Config.Entrypoint)
	}
	if file.Created.Time != example().created {
		t.Errorf("created at %s, want %s", file.Created, example().created)
	}
	manifest, err := image.Manifest()
	require.NoError(t, err)
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON {
		t.Errorf("media types are %s and %s, want OCI's", manifest.MediaType, manifest.Config.MediaType)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("annotations are %v", manifest.Annotations)
	}
	files := filesOf(t, image)
	if got := files["lockstep-manager"]; got.header.Mode != 0o755 || string(got.content) != "program for "+arch {
		t.Errorf("the program has mode %o and content %q", got.header.Mode, got.content)
	}
	if got := files["var/cache/lockstep/"].header; got.Uid != user {
		t.Errorf("the cache belongs to %d, want %d", got.Uid, user)
	}
	if _, ok := files[caFile]; ok {
		t.Error("there are CA certificates, and none were given")
	}
}

func TestSameContentSameDigest(t *testing.T) {
	t.Parallel()
	digest := func(change func(*content)) v1.Hash {
		c := example()
		change(&c)
		index, err := assemble(c)
		require.NoError(t, err)
		hash, err := index.Digest()
		require.NoError(t, err)
		return hash
	}
	first := digest(func(*content) {})
	if again := digest(func(*content) {}); again != first {
		t.Errorf("the same content gives %s and %s", first, again)
	}
	for name, change := range map[string]func(*content){
		"program":   func(c *content) { c.programs["arm64"] = []byte("other") },
		"version":   func(c *content) { c.version = "v2" },
		"CA bundle": func(c *content) { c.caBundle = []byte("certificates") },
	} {
		if digest(change) == first {
			t.Errorf("another %s gives the same digest", name)
		}
	}
}

func TestMissingArchitecture(t *testing.T) {
	t.Parallel()
	c := example()
	delete(c.programs, "arm64")
	if _, err := assemble(c); err == nil {
		t.Error("an image without a program for arm64 was made")
	}
}

func TestCABundle(t *testing.T) {
	t.Parallel()
	c := example()
	c.caBundle = []byte("certificates")
	layer, err := baseLayer(c)
	require.NoError(t, err)
	if got := string(read(t, layer)[caFile].content); got != "certificates" {
		t.Errorf("the bundle is %q", got)
	}
}

func TestOtherFilesAreNotRemoved(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "thesis.txt"), []byte("x"), 0o600))
	index, err := assemble(example())
	require.NoError(t, err)
	if _, err := write(index, path, example()); err == nil {
		t.Error("a folder with another file was replaced")
	}
	if _, err := os.Stat(filepath.Join(path, "thesis.txt")); err != nil {
		t.Error(err)
	}
}

type entry struct {
	header  tar.Header
	content []byte
}

func filesOf(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	layers, err := image.Layers()
	require.NoError(t, err)
	files := map[string]entry{}
	for _, layer := range layers {
		for name, file := range read(t, layer) {
			files[name] = file
		}
	}
	return files
}

func read(t *testing.T, layer v1.Layer) map[string]entry {
	t.Helper()
	stream, err := layer.Uncompressed()
	require.NoError(t, err)
	defer stream.Close()
	files := map[string]entry{}
	reader := tar.NewReader(stream)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		var content bytes.Buffer
		if _, err := io.Copy(&content, reader); err != nil {
			t.Fatal(err)
		}
		files[header.Name] = entry{header: *header, content: content.Bytes()}
	}
}
