package desired

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
)

// IsImage reports whether an argument is an image, and not the name of a package in a catalogue.
func IsImage(arg string) bool { return strings.ContainsAny(arg, "/:@") }

// OfferedArgument divides NAME/VERSION. A complete version after the only slash is that of a package which repositories
// offer: an image of such a path needs a tag to be one.
func OfferedArgument(arg string) (pkg, version string) {
	pkg, version, slash := strings.Cut(arg, "/")
	version = strings.TrimPrefix(version, "v")
	if _, err := versions.Parse(version); !slash || err != nil || len(validation.IsDNS1123Subdomain(pkg)) > 0 {
		return arg, ""
	}
	return pkg, version
}

// named has a version that stands in an argument in the place of --version.
func (f *ChoiceFlags) named(arg string) (pkg string, err error) {
	pkg, version := OfferedArgument(arg)
	if version == "" {
		return pkg, nil
	}
	if f.changed("version") && f.version != version {
		return pkg, fmt.Errorf("%s and --version %s contradict each other", arg, f.version)
	}
	f.version = version
	return pkg, nil
}

// Misread returns an error where an argument is an image by its form, but has the name of what repositories offer, or of
// a repository, in the place of a registry. Nothing is misread where this may not be looked at.
func (c *Chooser) Misread(ctx context.Context, verb, arg string) error {
	parts := strings.Split(arg, "/")
	if len(parts) > 3 || strings.Contains(arg, "@") {
		return nil
	}
	base, tag, _ := strings.Cut(parts[len(parts)-1], ":")
	install := "kubectl package " + verb + " "
	switch len(parts) {
	case 1:
		if c.offers(ctx, base) {
			return fmt.Errorf("%s is a package that a repository offers: %s%s%s. %s", base, install, base+versionFlag(tag), c.flag(), inFull(arg))
		}
		return nil
	case 2:
		if tag == "" && c.offers(ctx, parts[0]) {
			return fmt.Errorf("%s is a package that a repository offers: %s%s%s. %s", parts[0], install, parts[0]+versionFlag(base), c.flag(), inFull(arg))
		}
	}
	repository := parts[0]
	if !c.knows(ctx, repository) {
		return nil
	}
	pkg := base
	if len(parts) == 3 {
		pkg, tag = parts[1], base
	}
	if isRegistry := strings.ContainsAny(repository, ".:"); isRegistry && !c.offers(ctx, pkg) {
		return nil
	}
	return fmt.Errorf("%s is a repository: a package is named without it, and comes from the repository of the highest spec.priority that offers it: %s%s%s. %s",
		repository, install, pkg+versionFlag(tag), c.flag(), inFull(arg))
}

func versionFlag(version string) string {
	if _, err := versions.ParseConstraint(version); version == "" || err != nil {
		return ""
	}
	return " --version " + version
}

// inFull names the form of an image that nothing else has.
func inFull(arg string) string {
	ref, err := name.ParseReference(arg)
	if err != nil {
		return ""
	}
	return "An image is written in full: " + ref.Name()
}

func (c *Chooser) offers(ctx context.Context, pkg string) bool {
	if len(validation.IsDNS1123Subdomain(pkg)) > 0 {
		return false
	}
	offered, _, err := c.Of(ctx, pkg)
	return err == nil && len(offered) > 0
}

// knows reports whether there is a repository of a name that offers packages to the namespace.
func (c *Chooser) knows(ctx context.Context, repository string) bool {
	if len(validation.IsDNS1123Subdomain(repository)) > 0 {
		return false
	}
	scope := map[bool]corev1alpha1.Scope{true: corev1alpha1.ScopeCluster}[c.Namespace == ""]
	_, err := c.Cluster.FindRepository(ctx, cluster.RepositoryName{Scope: scope, Name: repository})
	return err == nil
}

// PackageOrImage reads an argument PACKAGE|IMAGE.
func (f *ChoiceFlags) PackageOrImage(arg string) (pkg string, image name.Reference, err error) {
	if pkg, err = f.named(arg); err != nil {
		return "", nil, err
	}
	if before, after, at := strings.Cut(arg, "@"); at && !strings.Contains(after, ":") {
		return "", nil, fmt.Errorf("%q is neither an image, which has a digest after the @, nor the name of a package: write it as %s --version %s", arg, before, after)
	}
	if !IsImage(pkg) {
		if problems := validation.IsDNS1123Subdomain(pkg); len(problems) > 0 {
			return "", nil, fmt.Errorf("PACKAGE %q is neither an image nor the name of a package: %s", pkg, problems[0])
		}
		return pkg, nil, nil
	}
	if f.Given() {
		return "", nil, fmt.Errorf("--version and --prereleases choose from what repositories offer, and %s is an image", arg)
	}
	image, err = content.ImageReference("IMAGE", arg)
	return "", image, err
}
