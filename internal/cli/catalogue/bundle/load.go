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
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Load pushes the images of a bundle below a prefix, such as mirror.example.com/packages, in a
// folder for each original host.
func Load(ctx context.Context, to Registries, r io.Reader, prefix string) (*Report, error) {
	folder, err := os.MkdirTemp("", "bundle-")
	if err != nil {
		return nil, err
	}
	// The bundle is unpacked before the first push, so that a damaged one changes no registry.
	defer func() { _ = os.RemoveAll(folder) }()
	if err := extract(r, folder); err != nil {
		return nil, err
	}

	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("it is not a bundle: %w", err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("it is not a bundle: index.json: %w", err)
	}

	// All targets are checked before the first push.
	targets, mirrors, err := place(list.Manifests, prefix)
	if err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	report := &Report{ImageConfigs: imageConfigs(mirrors)}
	for i, d := range list.Manifests {
		ref := d.Annotations[refName]
		if err := push(ctx, to, index, d, targets[i]); err != nil {
			return nil, err
		}
		if isSignature(ref, index, d) {
			report.Signatures++
			continue
		}
		report.Images = append(report.Images, Image{From: ref, Digest: d.Digest.String(), To: targets[i]})
	}

	return report, nil
}

// place returns the target of each image below a prefix, and the mirror of each host.
func place(images []v1.Descriptor, prefix string) (targets []string, mirrors map[string]string, err error) {
	mirrors, taken := map[string]string{}, map[string]v1.Descriptor{}
	for i, d := range images {
		ref := d.Annotations[refName]
		parsed, err := name.ParseReference(ref)
		if err != nil {
			return nil, nil, fmt.Errorf("manifests[%d]: the annotation %s is %q, which is not a valid image reference", i, refName, ref)
		}
		host, repository := parsed.Context().RegistryStr(), parsed.Context().RepositoryStr()
		if host == name.DefaultRegistry {
			host = "docker.io"
		}
		if _, err := imagepolicy.ParsePrefix(host); err != nil || !hostPattern.MatchString(host) {
			return nil, nil, fmt.Errorf("manifests[%d]: the annotation %s is %q, but ImageConfigs need a host in the form host or host:port, in lower case", i, refName, ref)
		}
		// A path such as .. in the index would push outside the prefix.
		if path.Clean("/"+repository) != "/"+repository {
			return nil, nil, fmt.Errorf("manifests[%d]: the annotation %s is %q, which might lead out of the prefix", i, refName, ref)
		}

		mirrors[host] = strings.TrimSuffix(prefix, "/") + "/" + strings.ReplaceAll(host, ":", "-") // a path cannot contain a port
		target := mirrors[host] + "/" + repository + ":" + parsed.Identifier()
		if _, byDigest := parsed.(name.Digest); byDigest {
			target = mirrors[host] + "/" + repository + "@" + parsed.Identifier()
		}

		if other, ok := taken[target]; ok && other.Digest != d.Digest {
			return nil, nil, fmt.Errorf("%s with the digest %s and %s with the digest %s would both be pushed to %s: save them into separate bundles, and load the bundles below different prefixes",
				other.Annotations[refName], other.Digest, ref, d.Digest, target)
		}
		taken[target] = d
		targets = append(targets, target)
	}

	return targets, mirrors, nil
}

// imageConfigs returns an ImageConfig for the mirror of each host, as YAML.
func imageConfigs(mirrors map[string]string) string {
	var all []string
	for _, host := range slices.Sorted(maps.Keys(mirrors)) {
		all = append(all, fmt.Sprintf("apiVersion: %s\nkind: ImageConfig\nmetadata:\n  name: mirror-%s\nspec:\n  matchImages:\n  - prefix: %q\n  rewrite:\n    prefix: %q\n",
			corev1alpha1.GroupVersion, strings.NewReplacer(":", "-", "_", "-").Replace(host), host, mirrors[host]))
	}
	return strings.Join(all, "---\n")
}

// hostPattern matches a host with its port that is valid in a path once the colon is replaced. The
// grammar of references allows other hosts.
var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]+)?$`)

// push pushes an image, or an index with all of its platforms.
func push(ctx context.Context, to Registries, index v1.ImageIndex, d v1.Descriptor, target string) error {
	parsed, options, err := to.Remote(ctx, target)
	if err != nil {
		return err
	}
	if d.MediaType.IsIndex() {
		var child v1.ImageIndex
		if child, err = index.ImageIndex(d.Digest); err == nil {
			err = remote.WriteIndex(parsed, child, options...)
		}
	} else {
		var image v1.Image
		if image, err = index.Image(d.Digest); err == nil {
			err = remote.Write(parsed, image, options...)
		}
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

// signatureTag matches the tag that cosign 2 gives the signature of an image.
var signatureTag = regexp.MustCompile(`:sha256-[0-9a-f]{64}\.sig$`)

// layoutFile matches the names of the files in an OCI layout.
var layoutFile = regexp.MustCompile(`^(oci-layout|index\.json|blobs/sha256/([0-9a-f]{64}))$`)

// extract writes the files of a layout into a folder. It refuses other files, blobs that do not
// match their names, and sparse files: these are larger than their bytes in the tar, and the folder
// must not outgrow the tar.
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
			return fmt.Errorf("it is not a bundle: %w", err)
		}

		if header.Typeflag == tar.TypeDir {
			continue
		}
		match := layoutFile.FindStringSubmatch(strings.TrimPrefix(header.Name, "./"))
		if match == nil || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("it is not a bundle: %q is not a file of an OCI layout", header.Name)
		}

		for record := range header.PAXRecords {
			if strings.HasPrefix(record, "GNU.sparse.") {
				return fmt.Errorf("it is not a bundle: %q is a sparse file, which bundle save does not write", header.Name)
			}
		}

		// Blobs are streamed to a file, but manifests are read into memory.
		if match[2] == "" && header.Size > limits.ImageManifestBytes {
			return fmt.Errorf("it is not a bundle: %q has %d bytes, the limit is %d", header.Name, header.Size, limits.ImageManifestBytes)
		}
		if err := extractFile(in, filepath.Join(folder, filepath.FromSlash(match[1])), match[2]); err != nil {
			return err
		}
	}
}

// extractFile writes one file, and checks it against a digest; empty for no check.
func extractFile(r io.Reader, file, digest string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
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
