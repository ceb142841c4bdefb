package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/internal/loader/registry"
)

// Load pushes the images of a bundle below a prefix, such as mirror.example.com/packages: each below the host that it is from.
func Load(ctx context.Context, to Registries, r io.Reader, prefix string) (*Report, error) {
	folder, err := os.MkdirTemp("", "bundle-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := extract(r, folder); err != nil {
		return nil, err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("it is no bundle: %w", err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("it is no bundle: index.json: %w", err)
	}
	targets, overrides := map[string]string{}, map[string]string{}
	for i, d := range list.Manifests {
		ref := d.Annotations[refName]
		parsed, err := name.ParseReference(ref)
		if err != nil {
			return nil, fmt.Errorf("index.json: manifests[%d]: the annotation %s is %q, which is no image reference", i, refName, ref)
		}
		target := below(prefix, parsed)
		targets[ref] = target
		overrides[prefixOf(ref, parsed)] = overrideOf(prefix, ref, parsed)
	}
	report := &Report{Overrides: asOverrides(overrides).String()}
	for _, d := range list.Manifests {
		ref := d.Annotations[refName]
		if err := push(ctx, to, index, d, targets[ref]); err != nil {
			return nil, err
		}
		if isSignature(ref, index, d) {
			report.Signatures++
			continue
		}
		report.Images = append(report.Images, Image{From: ref, Digest: d.Digest.String(), To: targets[ref]})
	}
	return report, nil
}

func push(ctx context.Context, to Registries, index v1.ImageIndex, d v1.Descriptor, target string) error {
	parsed, options, err := to.Remote(ctx, target)
	if err != nil {
		return err
	}
	if d.MediaType.IsIndex() {
		child, err := index.ImageIndex(d.Digest)
		if err == nil {
			err = remote.WriteIndex(parsed, child, options...)
		}
		if err != nil {
			return fmt.Errorf("push %s: %w", target, err)
		}
		return nil
	}
	image, err := index.Image(d.Digest)
	if err == nil {
		err = remote.Write(parsed, image, options...)
	}
	if err != nil {
		return fmt.Errorf("push %s: %w", target, err)
	}
	return nil
}

// isSignature reports whether an image of the index is the signature of another one.
func isSignature(ref string, index v1.ImageIndex, d v1.Descriptor) bool {
	if signatureTag.MatchString(ref) {
		return true
	}
	image, err := index.Image(d.Digest)
	if err != nil || d.MediaType.IsIndex() {
		return false
	}
	m, err := image.Manifest()
	return err == nil && m.Subject != nil
}

var signatureTag = regexp.MustCompile(`:sha256-[0-9a-f]{64}\.sig$`)

// below is the reference of an image below a prefix.
func below(prefix string, ref name.Reference) string {
	separator := ":"
	if _, byDigest := ref.(name.Digest); byDigest {
		separator = "@"
	}
	return folderOf(prefix, ref) + ref.Context().RepositoryStr() + separator + ref.Identifier()
}

// folderOf is where the images of a registry are; a port is no part of a path.
func folderOf(prefix string, ref name.Reference) string {
	return strings.TrimSuffix(prefix, "/") + "/" + strings.ReplaceAll(ref.Context().RegistryStr(), ":", "-") + "/"
}

// prefixOf is what references of a registry begin with as they are written: the host, or all of one that names none.
func prefixOf(written string, ref name.Reference) string {
	if host := ref.Context().RegistryStr() + "/"; strings.HasPrefix(written, host) {
		return host
	}
	return repositoryOf(written)
}

func overrideOf(prefix, written string, ref name.Reference) string {
	if strings.HasPrefix(written, ref.Context().RegistryStr()+"/") {
		return folderOf(prefix, ref)
	}
	return folderOf(prefix, ref) + ref.Context().RepositoryStr()
}

func asOverrides(all map[string]string) registry.Overrides {
	var out registry.Overrides
	for _, from := range slices.Sorted(maps.Keys(all)) {
		out = append(out, registry.Override{From: from, To: all[from]})
	}
	return out
}

var layoutFile = regexp.MustCompile(`^(oci-layout|index\.json|blobs/sha256/([0-9a-f]{64}))$`)

// extract writes the files of a layout into a folder. Other files, and blobs that are not what their names say, are errors.
func extract(r io.Reader, folder string) error {
	if err := os.MkdirAll(filepath.Join(folder, "blobs", "sha256"), 0o700); err != nil {
		return err
	}
	in := tar.NewReader(r)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no bundle: %w", err)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		match := layoutFile.FindStringSubmatch(strings.TrimPrefix(header.Name, "./"))
		if match == nil || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("it is no bundle: %q is not a file of an OCI layout", header.Name)
		}
		if err := extractFile(in, filepath.Join(folder, filepath.FromSlash(match[1])), match[2]); err != nil {
			return err
		}
	}
}

func extractFile(r io.Reader, path, digest string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), r)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("the bundle is damaged: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); digest != "" && got != digest {
		return fmt.Errorf("the bundle is damaged: the blob sha256:%s has the digest sha256:%s", digest, got)
	}
	return nil
}
