package bundle

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
)

// refName is the annotation for the reference of an image in the OCI image specification
// (annotations.md).
const refName = "org.opencontainers.image.ref.name"

// Registries are reached with the user's credentials.
type Registries interface {
	Content
	// Signatures returns the digests of the bundles that verify an image, and a lower bound for the
	// number of further ones.
	Signatures(ctx context.Context, ref, digest string) (bundles []v1.Hash, unread int, err error)
	// Remote parses a reference, and returns the options to reach its registry.
	Remote(ctx context.Context, ref string) (name.Reference, []remote.Option, error)
}

// Image of a bundle.
type Image struct {
	// From is the reference as packages write it.
	From string `json:"from"`
	// Digest, such as sha256:….
	Digest string `json:"digest"`
	// To is the reference that it was pushed to; empty if it was not pushed.
	To string `json:"to,omitempty"`
}

// Report has the contents of a bundle.
type Report struct {
	Images []Image `json:"images"`
	// Signatures is the number of signatures of the images.
	Signatures int `json:"signatures"`
	// ImageConfigs redirect packages, repositories and the images that they name to the pushed
	// images, as YAML. A running manager picks them up.
	ImageConfigs string   `json:"imageConfigs,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

// Save writes the bundle of packages and repositories of packages. Meanwhile, its files are in a
// new folder inside scratch.
func Save(ctx context.Context, from Registries, roots []string, w io.Writer, scratch string) (*Report, error) {
	found, err := collect(ctx, from, roots)
	if err != nil {
		return nil, err
	}
	// The folder is next to the output, because the temporary folder of the system can be too
	// small.
	folder, err := os.MkdirTemp(scratch, ".bundle-")
	if err != nil {
		return nil, err
	}

	defer func() { _ = os.RemoveAll(folder) }()
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return nil, err
	}
	s := &saving{path: path, from: from, report: &Report{Warnings: found.warnings}}
	for _, ref := range found.refs {
		if err := s.image(ctx, ref, found.digests[ref]); err != nil {
			return nil, err
		}
	}

	if err := s.index(); err != nil {
		return nil, err
	}
	return s.report, writeTar(w, folder)
}

// saving is one run of Save.
type saving struct {
	path        layout.Path
	from        Registries
	descriptors []v1.Descriptor
	report      *Report
}

// image saves an image for all its platforms, with its signatures. If the digest is known, that
// image was read.
func (s *saving) image(ctx context.Context, ref, known string) error {
	parsed, options, err := s.from.Remote(ctx, ref)
	if err != nil {
		return err
	}
	// The tag could have moved since the files were read.
	if known != "" {
		parsed = parsed.Context().Digest(known)
	}

	digest, err := s.write(parsed, ref, options)
	if err != nil {
		return fmt.Errorf("save %s: %w", ref, err)
	}
	s.report.Images = append(s.report.Images, Image{From: ref, Digest: digest.String()})
	if err := s.signatures(ctx, parsed, ref, digest, options); err != nil {
		return fmt.Errorf("save the signatures of %s: %w", ref, err)
	}

	return nil
}

// write saves the image that a reference leads to under the name ref.
func (s *saving) write(parsed name.Reference, ref string, options []remote.Option) (v1.Hash, error) {
	got, err := remote.Get(parsed, options...)
	if err != nil {
		return v1.Hash{}, err
	}
	if got.MediaType.IsIndex() {
		var index v1.ImageIndex
		if index, err = got.ImageIndex(); err == nil {
			err = s.path.WriteIndex(index)
		}
	} else {
		var image v1.Image
		if image, err = got.Image(); err == nil {
			err = s.path.WriteImage(image)
		}
	}
	if err != nil {
		return v1.Hash{}, err
	}

	s.descriptors = append(s.descriptors, v1.Descriptor{
		MediaType: got.MediaType, Size: got.Size, Digest: got.Digest, Annotations: map[string]string{refName: ref},
	})
	return got.Digest, nil
}

// signatures saves the signatures of cosign 3, which are referrers, and of cosign 2, which have a
// tag.
func (s *saving) signatures(ctx context.Context, image name.Reference, ref string, digest v1.Hash, options []remote.Option) error {
	bundles, unread, err := s.from.Signatures(ctx, ref, digest.String())
	if err != nil {
		return err
	}
	if unread > 0 {
		s.report.Warnings = append(s.report.Warnings, fmt.Sprintf("the image %s has at least %d more signatures than the %d that are saved: only %d are read to verify it", ref, unread, len(bundles), limits.Signatures))
	}

	repository := image.Context()
	for _, d := range bundles {
		if err := s.signature(repository.Digest(d.String()), loader.RepositoryOf(ref)+"@"+d.String(), options); err != nil {
			return err
		}
	}

	// cosign 2 names the tag of a signature after the digest of the image.
	tag := strings.Replace(digest.String(), ":", "-", 1) + ".sig"
	return s.signature(repository.Tag(tag), loader.RepositoryOf(ref)+":"+tag, options)
}

// signature saves a signature. A missing one is not an error.
func (s *saving) signature(parsed name.Reference, ref string, options []remote.Option) error {
	_, err := s.write(parsed, ref, options)
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return nil
	}
	if err == nil {
		s.report.Signatures++
	}
	return err
}

// index writes the index of the layout, sorted by reference.
func (s *saving) index() error {
	slices.SortFunc(s.descriptors, func(a, b v1.Descriptor) int { return strings.Compare(a.Annotations[refName], b.Annotations[refName]) })
	for _, d := range s.descriptors {
		if err := s.path.AppendDescriptor(d); err != nil {
			return err
		}
	}

	list, err := s.path.ImageIndex()
	if err != nil {
		return err
	}
	// Load refuses a larger index.
	if size, err := list.Size(); err != nil || size > limits.ImageManifestBytes {
		return errors.Join(err, fmt.Errorf("the list of %d images and signatures has %d bytes, the limit of index.json is %d: save fewer packages into one bundle",
			len(s.descriptors), size, limits.ImageManifestBytes))
	}

	return nil
}

// writeTar writes the files of a folder, sorted by name, without times and owners.
func writeTar(w io.Writer, folder string) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}

		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(relative), Size: info.Size(), Mode: 0o644}); err != nil {
			return err
		}

		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(out, f)

		return err
	})
	if err != nil {
		return err
	}

	return out.Close()
}
