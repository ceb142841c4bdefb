package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// Content reads images.
type Content interface {
	// Resolve returns the digest that a reference leads to.
	Resolve(ctx context.Context, ref string) (string, error)
	// Pull reads the files of a package. It returns none if the image is not a package.
	Pull(ctx context.Context, ref string) (loader.Files, error)
	// RepositoryFiles reads the files of a repository of packages. It returns none if the image is
	// not a repository.
	RepositoryFiles(ctx context.Context, ref string) (loader.Files, error)
}

// collection holds the references of a bundle.
type collection struct {
	content Content

	// refs as packages write them, in the order of their discovery.
	refs   []string
	listed map[string]bool

	// digests of references that were resolved when their files were read, so that the saved image
	// is the one that was read.
	digests map[string]string
	// walked packages and repositories. An image of a lock is listed without a walk, because a walk
	// downloads all of its layers.
	walked map[string]bool
	// warnings name everything that a bundle cannot carry.
	warnings []string
}

// collect finds the images that packages and repositories need: images of their locks and objects,
// packages that their locks depend on, and packages that a repository offers.
func collect(ctx context.Context, content Content, roots []string) (*collection, error) {
	c := &collection{content: content, listed: map[string]bool{}, digests: map[string]string{}, walked: map[string]bool{}}
	for _, root := range roots {
		if err := c.add(ctx, root); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add adds a package or a repository, followed by everything it names.
func (c *collection) add(ctx context.Context, ref string) error {
	if c.walked[ref] {
		return nil
	}
	if _, err := name.ParseReference(ref); err != nil {
		return fmt.Errorf("%q is not a valid image reference: write it as host/path:tag or host/path@sha256:…", ref)
	}
	// Marked before the walk, because packages and repositories can name each other in a cycle.
	c.walked[ref] = true
	c.list(ref)
	digest, err := c.content.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	c.digests[ref] = digest
	// The files are read by digest, so that they belong to the saved image even if the tag moves.
	pinned := loader.RepositoryOf(ref) + "@" + digest
	files, err := c.content.Pull(ctx, pinned)
	if err != nil {
		return err
	}
	if loader.HasManifest(files) {
		return c.addPackage(ctx, ref, files)
	}

	offered, err := c.content.RepositoryFiles(ctx, pinned)
	if err != nil {
		return err
	}
	if len(offered) == 0 {
		return fmt.Errorf("the image %s is neither a package nor a repository of packages", ref)
	}

	index, err := repository.FromImage(ref, offered)
	if err != nil {
		return err
	}

	for _, entry := range index.Entries {
		if err := c.add(ctx, entry.Image+"@"+entry.Digest); err != nil {
			return fmt.Errorf("of the repository %s: %w", ref, err)
		}
	}

	return nil
}

// addPackage adds the images and dependencies in the locks of a package and its components.
func (c *collection) addPackage(ctx context.Context, ref string, files loader.Files) error {
	locked := map[string]bool{}
	for _, part := range loader.Parts(files) {
		read, problems := manifest.Read(part.Files, part.Component)
		if read == nil {
			return fmt.Errorf("the package %s: %w", ref, problems.Err())
		}
		// Without a lock, the package names no images.
		if read.Lock == nil {
			continue
		}

		for _, image := range read.Lock.Spec.Images {
			pinned := loader.RepositoryOf(image.Image) + "@" + image.Digest
			locked[pinned] = true
			c.list(pinned)
		}

		for _, dependency := range read.Lock.Spec.Dependencies {
			if err := c.add(ctx, dependency.Image+"@sha256:"+strings.TrimPrefix(dependency.Digest, "sha256:")); err != nil {
				return fmt.Errorf("of the package %s, dependency %s: %w", ref, dependency.Name, err)
			}
		}
	}

	c.addOfObjects(ctx, ref, files, locked)
	return nil
}

// addOfObjects adds the images that objects name and no lock has, in all test cases.
func (c *collection) addOfObjects(ctx context.Context, ref string, files loader.Files, locked map[string]bool) {
	for _, part := range loader.Parts(files) {
		cases := []string{""}
		if read, _ := manifest.Read(part.Files, part.Component); read != nil {
			for i := range read.Manifest.Test.Template {
				cases = append(cases, read.Manifest.Test.Template[i].Name)
			}
		}

		for _, testCase := range cases {
			pkg, _, err := loader.Preview(ctx, files, loader.PreviewOptions{Component: part.Component, TestCase: testCase, LockedImages: true})
			if err != nil {
				// A package for the cluster cannot be rendered for a namespace.
				pkg, _, err = loader.Preview(ctx, files, loader.PreviewOptions{Component: part.Component, TestCase: testCase, LockedImages: true, Cluster: true})
			}
			if err != nil {
				c.warn("the package %s cannot be rendered without values, so images that its objects name and its lock does not have might be missing", ref)
				continue
			}

			for _, image := range pkg.Images {
				named := image.Image
				if image.Digest != "" {
					named = loader.RepositoryOf(image.Image) + "@" + image.Digest
				}
				if image.Name != "" || locked[named] || strings.HasPrefix(image.Image, loader.StaticImage) {
					continue
				}
				if _, err := name.ParseReference(named); err != nil {
					continue // no node can pull it either
				}
				c.warn("objects of the package %s name the image %s, which is not in spec.images: an ImageConfig redirects it if a container or volume names it", ref, named)
				c.list(named)
			}
		}
	}
}

// list adds a reference once.
func (c *collection) list(ref string) {
	if c.listed[ref] {
		return
	}
	c.listed[ref] = true
	c.refs = append(c.refs, ref)
}

// warn adds a warning once.
func (c *collection) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.warnings, text) {
		c.warnings = append(c.warnings, text)
	}
}
