package desired

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/content"
)

// IsImage reports whether an argument is an image rather than the name of a package in a catalogue.
func IsImage(arg string) bool { return strings.ContainsAny(arg, "/:@") }

// OfferedArgument divides NAME/VERSION. A complete version after the only slash belongs to an
// offered package, because an image of such a path needs a tag.
func OfferedArgument(arg string) (pkg, version string) {
	pkg, version, slash := strings.Cut(arg, "/")
	// The prefix v is the habit of tags. Offered versions do not have it.
	version = strings.TrimPrefix(version, "v")
	if _, err := versions.Parse(version); !slash || err != nil || len(validation.IsDNS1123Subdomain(pkg)) > 0 {
		return arg, ""
	}
	return pkg, version
}

// named takes the version from an argument, which replaces --version.
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

// PackageOrImage reads an argument PACKAGE|IMAGE. An image names its registry. Without a registry,
// the text might mean a package with its repository or version.
func (f *ChoiceFlags) PackageOrImage(arg string) (pkg string, image name.Reference, err error) {
	if pkg, err = f.named(arg); err != nil {
		return "", nil, err
	}
	host, _, slash := strings.Cut(pkg, "/")
	switch {
	// A name that fits both is a package, because an image needs a registry.
	case !IsImage(pkg):
		if problems := validation.IsDNS1123Subdomain(pkg); len(problems) > 0 {
			return "", nil, fmt.Errorf("PACKAGE %q is neither an image nor the name of a package: %s", pkg, problems[0])
		}
		return pkg, nil, nil
	case !slash || host != "localhost" && !strings.ContainsAny(host, ".:"):
		return "", nil, fmt.Errorf("%q names no registry: write an image in full, such as docker.io/library/web:v1, or an offered package by its name, with --version", arg)
	case f.Given():
		return "", nil, fmt.Errorf("--version and --prereleases choose from the offers of repositories, but %s is an image", arg)
	}

	image, err = content.ImageReference("IMAGE", arg)
	return "", image, err
}
