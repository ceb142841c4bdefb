package author

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/lockfile"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/cli/author/repositories"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
)

// registryHostVariable names a registry that replaces the registries of images.
const registryHostVariable = "PKO_REPOSITORY_HOST"

// updateCommand is kubectl package update.
type updateCommand struct {
	streams  genericiooptions.IOStreams
	registry content.RegistryFlags
}

// newUpdate returns the command update.
func newUpdate(streams genericiooptions.IOStreams) *cobra.Command {
	c := updateCommand{streams: streams}
	cmd := command.OnSource(&cobra.Command{
		Use:   "update SOURCE",
		Short: "Pin the images and dependencies of a package in its lock file (an installed package: upgrade)",
		Long: `Look up the digests of the images that the manifest names, choose images for its dependencies, and
write both to manifest.lock.yaml. Components have lock files of their own.

A dependency gets the highest version within its range that one of spec.repositories offers, and that
runs wherever the package itself runs. Dependencies of dependencies are not followed. Paths of
repository files are relative to the current folder.

If PKO_REPOSITORY_HOST is set, images are looked up at that registry; the lock file keeps the names of
the manifest.`,
		Args: command.Takes("SOURCE"),
	}, c.run)

	c.registry.Add(cmd)
	return cmd
}

// run computes all lock files before it writes the first one.
func (c *updateCommand) run(ctx context.Context, source string) error {
	files, err := content.ReadFolder(source)
	if err != nil {
		return err
	}

	locks, err := lockfile.Compute(ctx, files, lockfile.Options{Resolve: c.resolve, Repository: c.repository})
	if err != nil {
		return content.Reported(c.streams, err, "%s in "+source+": nothing was written")
	}

	changed := false
	for _, lock := range locks {
		if !lock.Changed {
			continue
		}
		if err := content.WriteFile(filepath.Join(source, filepath.FromSlash(lock.Path)), lock.Data); err != nil {
			return err
		}
		changed = true
	}

	if !changed {
		fmt.Fprintln(c.streams.Out, "Package is already up-to-date")
		return nil
	}

	fmt.Fprintln(c.streams.Out, "Package updated successfully!")
	return nil
}

// resolve returns the digest of an image, at the replaced registry if there is one.
func (c *updateCommand) resolve(ctx context.Context, ref string) (string, error) {
	ref, err := elsewhere(ref)
	if err != nil {
		return "", err
	}
	return c.registry.Resolve(ctx, ref)
}

// elsewhere replaces the registry of an image by the one that the environment names. It keeps
// Package Operator's variable, so that its scripts work.
func elsewhere(ref string) (string, error) {
	host := os.Getenv(registryHostVariable)
	if host == "" {
		return ref, nil
	}
	if _, err := name.NewRegistry(host); err != nil {
		return "", fmt.Errorf("%s=%q is not a registry: write a host, with its port if it has one", registryHostVariable, host)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("%q is not a valid image reference: write it as host/path:tag or host/path@sha256:…", ref)
	}
	return host + strings.TrimPrefix(parsed.Name(), parsed.Context().RegistryStr()), nil
}

// repository reads an entry of spec.repositories: a local file, or an image with lists of versions.
func (c *updateCommand) repository(ctx context.Context, source manifestsv1alpha1.PackageManifestRepository) (*repository.Index, error) {
	if source.File != "" {
		return repositories.Read(source.File)
	}
	ref, err := elsewhere(source.Image)
	if err != nil {
		return nil, err
	}

	files, err := c.registry.RepositoryFiles(ctx, ref)
	if err != nil {
		return nil, err
	}
	return repository.FromImage(source.Image, files)
}
