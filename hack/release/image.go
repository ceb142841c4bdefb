package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user and group of the program. Any number but 0 would do.
const user = 65532

// buildImage writes the manager's image, for each architecture of Linux, as an OCI layout.
func (r *release) buildImage(ctx context.Context, scratch, folder string) error {
	programs := map[string][]byte{}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		path, err := r.compile(ctx, scratch, "lockstep-manager", p)
		if err != nil {
			return err
		}
		if programs[p.arch], err = os.ReadFile(path); err != nil {
			return err
		}
	}

	return r.writeLayout(folder, programs)
}

// archiveImage puts the layout into the release.
func (r *release) archiveImage(ctx context.Context, scratch string) error {
	folder := filepath.Join(scratch, "image")
	if err := r.buildImage(ctx, scratch, folder); err != nil {
		return err
	}
	files, err := readFolder(folder)
	if err != nil {
		return err
	}
	return r.writeTar("lockstep-manager-"+r.version+".oci.tar", files)
}

// writeLayout writes a layout with one entry: the index of the programs' images by architecture.
func (r *release) writeLayout(folder string, programs map[string][]byte) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range all {
		program, ok := programs[p.arch]
		if p.os != "linux" || !ok {
			continue
		}
		image, err := r.imageFor(p, program)
		if err != nil {
			return fmt.Errorf("make the image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}

	index = mutate.Annotations(index, r.annotations()).(v1.ImageIndex)
	digest, err := index.Digest()
	if err != nil {
		return err
	}

	r.digest = digest.String()
	for _, name := range []string{"blobs", "index.json", "oci-layout"} { // of an earlier run
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}

	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}

	return written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version}))
}

// imageFor returns an image with one layer: the program, and the folders that the manifests mount
// volumes on.
func (r *release) imageFor(p platform, program []byte) (v1.Image, error) {
	content, err := r.tar([]file{
		{path: "lockstep-manager", mode: 0o755, content: program},
		{path: "tmp/", mode: 0o1777},
		{path: "var/", mode: 0o755},
		{path: "var/cache/", mode: 0o755},
		{path: "var/cache/lockstep/", mode: 0o750, owner: user},
	})
	if err != nil {
		return nil, err
	}

	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}

	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/lockstep-manager"}, WorkingDir: "/",
			Env: []string{"PATH=/", "HOME=/tmp"}, Labels: r.annotations(),
		},
	})
	if err != nil {
		return nil, err
	}

	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "hack/release"}})
	if err != nil {
		return nil, err
	}

	return mutate.Annotations(image, r.annotations()).(v1.Image), nil
}

func (r *release) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "lockstep-manager",
		"org.opencontainers.image.description": "Rolls out packages of Kubernetes objects phase by phase.",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.created.Format(time.RFC3339),
	}
}
