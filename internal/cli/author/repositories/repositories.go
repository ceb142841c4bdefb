package repositories

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
)

// repositoryCommand is shared by the commands about files of repositories.
type repositoryCommand struct {
	streams  genericiooptions.IOStreams
	registry content.RegistryFlags
	name     string
}

// New returns the command with its subcommands.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repository",
		Short: "Manage lists of package images to choose dependencies from",
		Long: `Manage repositories: lists of package images with their versions, in a file or an image. The manifest of a
package names them in spec.repositories, and update chooses from them.

For the repositories of a cluster see kubectl package repo.`,
	}

	remove, pull := repositoryCommand{streams: streams}, repositoryCommand{streams: streams}
	cmd.AddCommand(newBuild(streams), pull.onImage("pull", "TAG", "Write the repository in an image to a file", pull.pull), newPush(streams))
	// Package Operator edits a repository in its file. The command build makes it from packages
	// instead.
	for _, edits := range []*cobra.Command{
		newInitialize(streams), newAdd(streams), remove.onImage("remove", "IMAGE", "Withdraw a package image with all of its versions", remove.remove),
	} {
		edits.Hidden = true
		cmd.AddCommand(edits)
	}

	return cmd
}

// newInitialize returns the command repository initialize.
func newInitialize(streams genericiooptions.IOStreams) *cobra.Command {
	c := repositoryCommand{streams: streams}
	return &cobra.Command{
		Use: "initialize FILE [NAME]", Aliases: []string{"init"},
		Short: "Create an empty repository",
		Long: `Write an empty repository. It replaces an existing repository, but no other file. Dependencies
refer to the repository by NAME, which defaults to the name of the file.`,
		Args: command.Takes("FILE", "[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.name = args[len(args)-1]
			if len(args) == 1 {
				c.name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
			}

			if problems := validation.IsDNS1123Subdomain(c.name); len(problems) > 0 {
				return command.UsageError(cmd, fmt.Errorf("%q cannot be the name of a repository: %s: choose another NAME", c.name, problems[0]))
			}
			return c.initialize(args[0])
		},
	}
}

// initialize writes an empty repository. It refuses to overwrite a file that is not a repository.
func (c *repositoryCommand) initialize(path string) error {
	if _, err := os.Lstat(path); err == nil {
		if _, err := Read(path); err != nil {
			return fmt.Errorf("%s exists and is not a repository: delete it first, or choose another name", path)
		}
	}
	return c.write(path, &repository.Index{Name: c.name})
}

// newAdd returns the command repository add.
func newAdd(streams genericiooptions.IOStreams) *cobra.Command {
	c := repositoryCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "add FILE IMAGE VERSION...",
		Short: "Offer a package image as one or more versions",
		Long: `Offer a package image in a repository as one or more versions. The image is pulled for its name and
constraints, and offered by its digest.`,
		Example: `  kubectl package repository add shop.yaml registry.example.com/web:v1.2.0 v1.2.0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// The user might mean the repositories of a cluster, so the error also names that
			// command.
			if len(args) < 3 && !slices.Contains(args, "") {
				missing := []string{"FILE", "IMAGE", "VERSION"}[len(args)]
				return command.UsageError(cmd, fmt.Errorf("%s is missing: this offers an image in a file; %s", missing, addsToCluster))
			}
			if err := command.Takes("FILE", "IMAGE", "VERSION")(cmd, args[:min(len(args), 3)]); err != nil {
				return err
			}

			var offered []*semver.Version
			for _, text := range args[2:] {
				v, err := versions.ParseVersion(text)
				if err != nil {
					return command.UsageError(cmd, err)
				}
				offered = append(offered, v)
			}

			if _, err := content.ImageReference("IMAGE", args[1]); err != nil {
				return command.UsageError(cmd, err)
			}
			return c.add(cmd.Context(), args[0], args[1], offered)
		},
	}

	// Flags of kubectl package repo add are unknown here, and the hint names that command.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		text := err.Error()
		if strings.HasPrefix(text, "unknown") {
			return command.UsageError(cmd, fmt.Errorf("there is no flag %s: this offers an image in a file; %s", text[strings.LastIndex(text, " ")+1:], addsToCluster))
		}
		return command.UsageError(cmd, err)
	})

	c.registry.Add(cmd)
	return cmd
}

// add offers the package in an image as some versions.
func (c *repositoryCommand) add(ctx context.Context, path, ref string, versions []*semver.Version) error {
	index, err := Read(path)
	if err != nil {
		return err
	}
	image, err := c.registry.PullFrom(ctx, "", ref, nil)
	if err != nil {
		return err
	}

	entry, err := c.entryOf(ctx, ref, image.Digest, image.Files)
	if err != nil {
		return err
	}
	entry.Versions = versions
	if err := index.Add(entry); err != nil {
		return err
	}

	return c.write(path, index)
}

// entryOf describes the package in an image.
func (c *repositoryCommand) entryOf(ctx context.Context, ref, digest string, files loader.Files) (repository.Entry, error) {
	m, err := loader.Describe(files)
	if err != nil {
		return repository.Entry{}, content.Reported(c.streams, err, "the image "+ref+" is not a usable package: %s")
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return repository.Entry{}, err
	}
	if m.Spec.Version == "" {
		m.Spec.Version = "0.0.0" // add names the versions
	}

	return repository.EntryOf(m, parsed.Context().Name(), digest, files, providedBy(ctx, files))
}

// providedBy returns the APIs that a package brings if it is rendered with its defaults.
func providedBy(ctx context.Context, files loader.Files) []corev1alpha1.ProvidedAPI {
	for _, cluster := range []bool{true, false} {
		if pkg, _, err := loader.Preview(ctx, files, loader.PreviewOptions{Cluster: cluster, LockedImages: true}); err == nil {
			return pkg.Provides
		}
	}
	return nil
}

// onImage returns a command about a repository file and an image, the argument noun.
func (c *repositoryCommand) onImage(verb, noun, short string, run func(ctx context.Context, path string, ref name.Reference, text string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " FILE " + noun,
		Short: short,
		Args:  command.Takes("FILE", noun),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := content.ImageReference(noun, args[1])
			if err != nil {
				return command.UsageError(cmd, err)
			}
			return run(cmd.Context(), args[0], ref, args[1])
		},
	}

	c.registry.Add(cmd)
	return cmd
}

// remove withdraws an image by its digest, so that other images of its repository stay.
func (c *repositoryCommand) remove(ctx context.Context, path string, ref name.Reference, text string) error {
	index, err := Read(path)
	if err != nil {
		return err
	}
	digest, err := c.registry.Resolve(ctx, text)
	if err != nil {
		return err
	}
	if !index.Remove(ref.Context().Name(), digest) {
		return fmt.Errorf("the repository in %s does not offer %s@%s", path, ref.Context().Name(), digest)
	}

	return c.write(path, index)
}

// pull writes the repository in an image to a file.
func (c *repositoryCommand) pull(ctx context.Context, path string, _ name.Reference, text string) error {
	files, err := c.registry.RepositoryFiles(ctx, text)
	if err != nil {
		return err
	}
	index, err := repository.FromImage(text, files)
	if err != nil {
		return err
	}
	return c.write(path, index)
}

// newPush returns the command repository push.
func newPush(streams genericiooptions.IOStreams) *cobra.Command {
	c := repositoryCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "push FILE TAG",
		Short: "Push the repository in a file as an image",
		Args:  command.Takes("FILE", "TAG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tags, err := c.registry.Tags(args[1:])
			if err != nil {
				return command.UsageError(cmd, err)
			}
			index, err := Read(args[0])
			if err != nil {
				return err
			}

			image, err := index.Image()
			if err != nil {
				return err
			}
			return c.registry.Push(cmd.Context(), image, tags)
		},
	}

	c.registry.Add(cmd)
	return cmd
}

// Read reads the repository in a file.
func Read(path string) (*repository.Index, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no repository file %s: create one with kubectl package repository initialize", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}

	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limits.FileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	index, err := repository.Parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("the repository cannot be used: %w", err)
	}

	return index, nil
}

// write writes a repository to a file.
func (c *repositoryCommand) write(path string, index *repository.Index) error {
	data, err := index.Marshal()
	if err != nil {
		return err
	}
	return content.WriteFile(path, data)
}

// addsToCluster is the hint for users who add a repository to a file by mistake.
const addsToCluster = "to add a repository to the cluster, run kubectl package repo add NAME IMAGE, or --http URL"
