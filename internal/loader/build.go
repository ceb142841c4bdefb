package loader

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// BuildOptions are the properties of an image besides its files.
type BuildOptions struct {
	Labels      map[string]string
	Annotations map[string]string
}

// Build makes an image of a package: one layer, linux/amd64, reproducible, without dotted paths.
func Build(files Files, opts BuildOptions) (v1.Image, error) {
	return BuildFolder("package", files, opts)
}

// BuildFolder is Build for files of another folder at the root of the image. The platform is fixed,
// so that equal files give equal images on every machine.
func BuildFolder(folder string, files Files, opts BuildOptions) (v1.Image, error) {
	layer, err := buildLayer(folder, files)
	if err != nil {
		return nil, fmt.Errorf("build the image layer: %w", err)
	}

	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: "amd64", OS: "linux", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		Config: v1.Config{Labels: opts.Labels},
	})
	if err != nil {
		return nil, fmt.Errorf("build the image config: %w", err)
	}

	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{CreatedBy: "kubectl package build"}})
	if err != nil {
		return nil, fmt.Errorf("build the image: %w", err)
	}
	// Annotations belong to the manifest. They do not change the layer, which registries then
	// share.
	if len(opts.Annotations) > 0 {
		img = mutate.Annotations(img, maps.Clone(opts.Annotations)).(v1.Image)
	}

	return img, nil
}

// buildLayer compresses the files into one layer in memory; packages are small by their limits.
func buildLayer(folder string, files Files) (v1.Layer, error) {
	var compressed bytes.Buffer
	z, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(z, folder, files); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}

	data := compressed.Bytes()
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithMediaType(types.OCILayer))
}

// writeTar writes folders before files, without dotted paths.
func writeTar(w io.Writer, folder string, files Files) error {
	t := tar.NewWriter(w)
	// Times, owners and modes are fixed and paths are sorted, so that equal files have an equal
	// digest.
	write := func(kind byte, name string, mode int64, data []byte) error {
		if err := t.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Size: int64(len(data)), Mode: mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := t.Write(data)
		return err
	}

	for _, dir := range folders(folder, files) {
		if err := write(tar.TypeDir, dir+"/", 0o755, nil); err != nil {
			return err
		}
	}

	for _, p := range files.Paths() {
		if hidden(p) {
			continue
		}
		if err := write(tar.TypeReg, folder+"/"+p, 0o644, files[p]); err != nil {
			return err
		}
	}

	return t.Close()
}

// folders returns the folder and all folders of its files, sorted, for their own entries in the
// archive.
func folders(folder string, files Files) []string {
	set := map[string]bool{folder: true}
	for p := range files {
		if hidden(p) {
			continue
		}
		for dir := path.Dir(folder + "/" + p); !set[dir]; dir = path.Dir(dir) {
			set[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// hidden reports whether a path has a part with a leading dot, which readers of packages skip.
func hidden(p string) bool { return strings.HasPrefix(p, ".") || strings.Contains(p, "/.") }
