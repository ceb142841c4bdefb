package repositories

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/registry"
)

// buildCommand is kubectl package repository build.
type buildCommand struct {
	repositoryCommand
	inputs []string
	output string
	push   string
	prefix string
	// missing are images of packages that are pushed if the repository can be built.
	missing []missingImage
}

// missingImage is an image that is pushed along with the repository.
type missingImage struct {
	image v1.Image
	ref   string
	tags  []name.Tag
}

// newBuild returns the command repository build.
func newBuild(streams genericiooptions.IOStreams) *cobra.Command {
	c := &buildCommand{repositoryCommand: repositoryCommand{streams: streams}}
	cmd := command.Runs(&cobra.Command{
		Use:   "build FOLDER|FILE...",
		Short: "Build a repository from entries and packages, as a file or an image",
		Long: `Build a repository for PackageRepositories of a cluster from files with RepositoryEntries, and from
folders of packages. The image of a package in a folder is --images/NAME:vVERSION, by its manifest. It is
built and pushed. If it exists, it must have the same files.

The same input gives the same digest.`,
		Example: `  kubectl package repository build repo/ --push registry.example.com/repositories/shop:latest
  kubectl package repository build packages/ --images registry.example.com/packages -o repository.yaml`,
	}, c.check, c.run)

	cmd.Flags().StringVarP(&c.output, "output", "o", "", "write to this YAML `file`")
	cmd.Flags().StringVar(&c.push, "push", "", "push the repository to this `TAG` as an image")
	cmd.Flags().StringVar(&c.prefix, "images", "", "host and `path` of the images of packages in folders")
	cmd.Flags().StringVar(&c.name, "name", "", "set the `name` of the repository (default: the name of the output)")
	c.registry.Add(cmd)

	return cmd
}

// check validates the flags, and returns the tags of the repository.
func (c *buildCommand) check(args []string) ([]name.Tag, error) {
	c.inputs = args
	switch {
	case len(args) == 0:
		return nil, errors.New("FOLDER or FILE is missing")
	case c.output == "" && c.push == "":
		return nil, errors.New("the output is missing: add -o FILE, or --push TAG")
	case c.output != "" && !slices.Contains([]string{".yaml", ".yml"}, path.Ext(c.output)):
		return nil, fmt.Errorf("-o %q must end with .yaml or .yml; an image is pushed by --push", c.output)
	case c.name == "":
		// The last part of a path or an image, without extension and tag.
		base, _, _ := strings.Cut(path.Base(filepath.ToSlash(cmp.Or(c.push, c.output))), ":")
		c.name = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	}

	if problems := validation.IsDNS1123Subdomain(c.name); len(problems) > 0 {
		return nil, fmt.Errorf("%q cannot be the name of a repository: %s: choose another one with --name", c.name, problems[0])
	}
	if c.push == "" {
		return nil, nil
	}

	return c.registry.Tags([]string{c.push})
}

// run reads the inputs, builds the repository, and saves or pushes it. Images of packages are
// pushed only after the repository was built without an error.
func (c *buildCommand) run(ctx context.Context, tags []name.Tag) error {
	found := &input{}
	for _, arg := range c.inputs {
		if err := found.path(ctx, arg); err != nil {
			return err
		}
	}

	for _, folder := range found.packages {
		entry, err := c.packageEntry(ctx, folder)
		if err != nil {
			return err
		}
		found.entries = append(found.entries, entry)
	}

	files, err := found.files(c.name)
	if err != nil {
		return err
	}
	// The result is read like a cluster would read it, before anything is pushed.
	offered, err := repository.Read(files)
	if err != nil {
		return err
	}

	for _, m := range c.missing {
		if err := c.registry.Push(ctx, m.image, m.tags); err != nil {
			return err
		}
		fmt.Fprintf(c.streams.ErrOut, "pushed %s\n", terminal.Line(m.ref))
	}

	return c.write(ctx, files, offered, tags)
}

// write saves and pushes the repository.
func (c *buildCommand) write(ctx context.Context, files loader.Files, offered *repository.Content, tags []name.Tag) error {
	image, err := loader.BuildFolder(repository.Folder, files, loader.BuildOptions{})
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return fmt.Errorf("build the image: %w", err)
	}

	if c.output != "" {
		if err := content.WriteFile(c.output, files[repositoryFile]); err != nil {
			return err
		}
	}

	if err := c.registry.Push(ctx, image, tags); err != nil {
		return err
	}
	versions := 0
	for _, p := range offered.Packages {
		versions += len(p.Versions)
	}

	fmt.Fprintf(c.streams.Out, "Repository %s: %s, %s\n", c.name, terminal.Count(len(offered.Packages), "package"), terminal.Count(versions, "version"))
	if c.output != "" {
		fmt.Fprintf(c.streams.Out, "  saved   %s\n", terminal.Line(c.output))
	}
	for _, tag := range tags {
		fmt.Fprintf(c.streams.Out, "  digest  %s\n  pushed  %s\n", digest, tag)
	}

	return nil
}

// packageEntry returns the entry for the image of the package in a folder. It builds the image if
// there is none yet.
func (c *buildCommand) packageEntry(ctx context.Context, folder string) (repository.Entry, error) {
	files, err := content.ReadFolder(folder)
	if err != nil {
		return repository.Entry{}, err
	}
	m, err := loader.Describe(files)
	if err != nil {
		return repository.Entry{}, content.Reported(c.streams, err, "%s in "+folder)
	}

	if c.prefix == "" {
		return repository.Entry{}, fmt.Errorf("%s is a package, but its image is not known: add --images HOST/PATH, for HOST/PATH/%s:v%s", folder, m.Name, m.Spec.Version)
	}
	if m.Spec.Version == "" {
		return repository.Entry{}, fmt.Errorf("the manifest in %s has no spec.version: set one, such as 1.2.3, to offer the package in a repository", folder)
	}
	ref := strings.TrimSuffix(c.prefix, "/") + "/" + m.Name + ":v" + strings.ReplaceAll(m.Spec.Version, "+", "_")
	digest, err := c.build(ctx, folder, ref, files)
	if err != nil {
		return repository.Entry{}, err
	}

	return c.entryOf(ctx, ref, digest, files)
}

// build builds the image of a package in a folder, and returns its digest. An existing image stays,
// and must hold the same files.
func (c *buildCommand) build(ctx context.Context, folder, ref string, files loader.Files) (string, error) {
	tags, err := c.registry.Tags([]string{ref})
	if err != nil {
		return "", err
	}
	there, err := c.registry.PullFrom(ctx, "", ref, nil)
	var failure *registry.PullError
	switch {
	case err == nil && maps.EqualFunc(there.Files, files, bytes.Equal):
		return there.Digest, nil
	case err == nil:
		return "", fmt.Errorf("%s exists with other files than %s: raise spec.version in its manifest, or push it first: kubectl package build %s --tag %s --push", ref, folder, folder, ref)
	case !errors.As(err, &failure) || failure.Reason != registry.ReasonNotFound:
		return "", fmt.Errorf("%w. %s would be pushed there", err, folder)
	}

	found, err := testrunner.Validate(ctx, files, testrunner.Options{Folder: folder})
	if err != nil {
		return "", err
	}
	content.PrintFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
	if !found.Valid {
		return "", fmt.Errorf("%s in %s: nothing was built. To push it unchecked: kubectl package build %s --tag %s --push --ignore-schemas", content.Problems(len(found.Problems)), folder, folder, ref)
	}

	image, err := loader.Build(files, loader.BuildOptions{})
	if err != nil {
		return "", err
	}
	c.missing = append(c.missing, missingImage{image, ref, tags})
	digest, err := image.Digest()

	return digest.String(), err
}

// input gathers the sources of a repository.
type input struct {
	entries []repository.Entry
	// packages are folders with a manifest.
	packages []string
}

// path adds the files below a path. A folder with a manifest is one package, and is not searched
// further.
func (r *input) path(ctx context.Context, root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("there is no file or folder %s", p)
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir() && p != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() && content.HasManifest(p):
			r.packages = append(r.packages, p)
			return fs.SkipDir
		case d.Type().IsRegular() && (p == root || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p))):
			return r.file(ctx, p)
		}

		return nil
	})
}

// file adds the documents of a file. The first unsuitable document is an error.
func (r *input) file(ctx context.Context, p string) error {
	in := content.NewInputs(nil)
	if err := in.One(ctx, p); err != nil {
		return err
	}
	var failure error
	problems := document.Each(p, in.Out[0].Data, func(d *document.Document) {
		failure = cmp.Or(failure, r.document(d))
	})

	return cmp.Or(problems.Err(), failure)
}

// document adds an entry. Other kinds are refused, because a typing error would otherwise drop an
// entry.
func (r *input) document(d *document.Document) error {
	m, _ := d.Value.(map[string]any)
	apiVersion, _ := m["apiVersion"].(string)
	kind, _ := m["kind"].(string)
	switch {
	// The head of a repository file has no entries of its own.
	case apiVersion == manifestsv1alpha1.GroupVersion.String() && kind == manifestsv1alpha1.KindRepository:
		return nil
	case apiVersion != manifestsv1alpha1.GroupVersion.String() || kind != manifestsv1alpha1.KindRepositoryEntry:
		return fmt.Errorf("%s (document %d): %s %s does not belong in a repository: it has RepositoryEntries", d.Path, d.Index, apiVersion, kind)
	}

	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	index, err := repository.Parse(d.Path, append([]byte(repositoryHead), raw...))
	if err != nil {
		return fmt.Errorf("%s (document %d): %w", d.Path, d.Index, err)
	}
	r.entries = append(r.entries, index.Entries...)

	return nil
}

// repositoryHead makes a repository file of one entry.
const repositoryHead = `{"apiVersion": "manifests.package-operator.run/v1alpha1", "kind": "Repository", "metadata": {"name": "entry"}}
---
`

// repositoryFile is the file of a repository, below its folder.
const repositoryFile = "repository.yaml"

// files of the repository.
func (r *input) files(named string) (loader.Files, error) {
	if len(r.entries) == 0 {
		return nil, errors.New("there is nothing to offer: no RepositoryEntry and no package was found")
	}
	index, err := repository.Build(named, r.entries)
	if err != nil {
		return nil, fmt.Errorf("the repository cannot be built: %w", err)
	}

	data, err := index.Marshal()
	return loader.Files{repositoryFile: data}, err
}
