package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user and group of the program; any number but 0 does.
	user = 65532

	// entrypoint is the path of the program in the image.
	entrypoint = "/lockstep-manager"

	// cacheFolder is where pulled packages are kept; the manifests mount a
	// volume there.
	cacheFolder = "var/cache/lockstep"

	// caFile is where Go looks for CA certificates first.
	caFile = "etc/ssl/certs/ca-certificates.crt"
)

// content is everything that goes into the image.
type content struct {
	version  string
	revision string // commit, may be empty
	created  time.Time
	caBundle []byte // PEM, may be empty
	// programs by architecture
	architectures []string
	programs      map[string][]byte
}

// assemble makes the image index, deterministically.
func assemble(c content) (v1.ImageIndex, error) {
	base, err := baseLayer(c)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range c.architectures {
		program, ok := c.programs[arch]
		if !ok {
			return nil, fmt.Errorf("there is no program for %s", arch)
		}
		image, err := imageFor(c, arch, base, program)
		if err != nil {
			return nil, fmt.Errorf("make the image for linux/%s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return mutate.Annotations(index, annotations(c)).(v1.ImageIndex), nil
}

func imageFor(c content, arch string, base v1.Layer, program []byte) (v1.Image, error) {
	layer, err := layerOf(c.created, file{path: entrypoint[1:], mode: 0o755, content: program})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: c.created},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%d", user, user),
			Entrypoint: []string{entrypoint},
			WorkingDir: "/",
			Env:        []string{"PATH=/", "HOME=/tmp"},
			Labels:     annotations(c),
		},
	})
	if err != nil {
		return nil, err
	}
	history := v1.History{Created: v1.Time{Time: c.created}, CreatedBy: "hack/image"}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: history},
		mutate.Addendum{Layer: layer, History: history})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, annotations(c)).(v1.Image), nil
}

func annotations(c content) map[string]string {
	a := map[string]string{
		"org.opencontainers.image.title":       "lockstep-manager",
		"org.opencontainers.image.description": "Rolls out packages of Kubernetes objects phase by phase.",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     c.version,
		"org.opencontainers.image.created":     c.created.Format(time.RFC3339),
	}
	if c.revision != "" {
		a["org.opencontainers.image.revision"] = c.revision
	}
	return a
}

// file is an entry of a layer; a path that ends in a slash is a directory.
type file struct {
	path    string
	mode    int64
	owner   int
	content []byte
}

// baseLayer has what the program expects around it: directories, its user's
// name, and the CA certificates where there are any.
func baseLayer(c content) (v1.Layer, error) {
	files := []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nlockstep:x:%d:\n", user)},
		{
			path: "etc/passwd", mode: 0o644,
			content: fmt.Appendf(nil, "root:x:0:0:root:/:/\nlockstep:x:%d:%d:lockstep:/tmp:/\n", user, user),
		},
		{path: "etc/ssl/", mode: 0o755},
		{path: "etc/ssl/certs/", mode: 0o755},
	}
	if len(c.caBundle) > 0 {
		files = append(files, file{path: caFile, mode: 0o644, content: c.caBundle})
	}
	files = append(files,
		file{path: "tmp/", mode: 0o1777},
		file{path: "var/", mode: 0o755},
		file{path: "var/cache/", mode: 0o755},
		file{path: cacheFolder + "/", mode: 0o750, owner: user},
	)
	return layerOf(c.created, files...)
}

func layerOf(created time.Time, files ...file) (v1.Layer, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{
			Name: f.path, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)),
			ModTime: created, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if f.path[len(f.path)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// write replaces the layout at a path and returns the digest of the index.
func write(index v1.ImageIndex, path string, c content) (v1.Hash, error) {
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	if err := removeLayout(path); err != nil {
		return v1.Hash{}, err
	}
	written, err := layout.Write(path, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write the layout %s: %w", path, err)
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": c.version})
	if err := written.AppendIndex(index, name); err != nil {
		return v1.Hash{}, fmt.Errorf("write the layout %s: %w", path, err)
	}
	return digest, nil
}

// removeLayout removes a layout of an earlier run, and nothing else.
func removeLayout(path string) error {
	entries, err := os.ReadDir(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "blobs", "index.json", "oci-layout":
		default:
			return fmt.Errorf("%s holds %s, which is no part of an OCI layout; give another folder", path, entry.Name())
		}
	}
	return os.RemoveAll(path)
}
