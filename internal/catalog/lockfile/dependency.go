package lockfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// dependencies returns the locked images of all dependencies on images, in the order of the
// manifest. It reports all failures together.
func (u *unit) dependencies(ctx context.Context, spec *manifestsv1alpha1.PackageManifestSpec) ([]manifestsv1alpha1.PackageManifestLockDependency, error) {
	var wanted []manifestsv1alpha1.PackageManifestDependencyImage
	for _, d := range spec.Dependencies {
		if d.Image != nil {
			wanted = append(wanted, *d.Image)
		}
	}

	if len(wanted) == 0 {
		return nil, nil
	}

	indexes, err := u.repositories(ctx, spec.Repositories)
	if err != nil {
		return nil, err
	}

	var out []manifestsv1alpha1.PackageManifestLockDependency
	var failed []error
	for _, d := range wanted {
		c, err := choose(indexes, d, spec.Constraints)
		if err != nil {
			failed = append(failed, fmt.Errorf("dependency %q: %w", d.Name, err))
			continue
		}
		out = append(out, manifestsv1alpha1.PackageManifestLockDependency{
			Name: d.Name, Image: c.entry.Image, Digest: c.entry.Digest, Version: "v" + c.version.String(),
		})
	}

	return out, errors.Join(failed...)
}

// repositories reads the repositories of a manifest. Their names have to differ, because
// dependencies select by them.
func (u *unit) repositories(ctx context.Context, sources []manifestsv1alpha1.PackageManifestRepository) ([]*repository.Index, error) {
	var out []*repository.Index
	for _, source := range sources {
		index, err := u.opts.Repository(ctx, source)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(other *repository.Index) bool { return other.Name == index.Name }) {
			return nil, fmt.Errorf("two of spec.repositories have the name %s: dependencies name a repository, so remove one of them", index.Name)
		}
		out = append(out, index)
	}
	return out, nil
}

// candidate is one version of a package that a repository offers.
type candidate struct {
	version *semver.Version
	entry   repository.Entry
}

// choose returns the highest version that a dependency can have.
func choose(indexes []*repository.Index, d manifestsv1alpha1.PackageManifestDependencyImage, constraints []manifestsv1alpha1.PackageManifestConstraint) (candidate, error) {
	want, err := manifest.ParseRange(d.Range)
	if err != nil {
		return candidate{}, fmt.Errorf("%q is not a range of versions", d.Range)
	}

	offered, err := offers(indexes, d.Package)
	if err != nil {
		return candidate{}, err
	}

	candidates := make([]versions.Candidate, len(offered))
	for i, c := range offered {
		candidates[i] = versions.Candidate{Version: c.version.String(), Retracted: c.entry.Retracted}
		switch {
		case c.version.Prerelease() != "" && !want.Check(c.version):
			candidates[i].NotInstallable = "the range names no prerelease"
		case !covers(c.entry.Constraints, constraints):
			candidates[i].NotInstallable = "spec.constraints permits platforms that it is not for"
		}
	}

	// All prereleases take part, because the range itself decides about them.
	selection := corev1alpha1.VersionSelection{Version: d.Range, Prereleases: &corev1alpha1.Prereleases{}}
	choice := versions.Select(candidates, versions.Request{Selection: selection})
	if choice.Index < 0 {
		return candidate{}, fmt.Errorf("%s: %s", d.Package, choice.Message)
	}
	return offered[choice.Index], nil
}

// offers returns all versions of a package named <package>.<repository>. Both names can contain
// dots.
func offers(indexes []*repository.Index, fqdn string) ([]candidate, error) {
	var out []candidate
	var names []string
	for _, x := range indexes {
		names = append(names, x.Name)
		name, ok := strings.CutSuffix(fqdn, "."+x.Name)
		if !ok {
			continue
		}
		for _, e := range x.Entries {
			if e.Name != name {
				continue
			}
			for _, v := range e.Versions {
				out = append(out, candidate{v, e})
			}
		}
	}

	if len(out) == 0 {
		return nil, fmt.Errorf("no repository offers %s: write it as <package>.<repository>; spec.repositories holds: %s", fqdn, cmp.Or(strings.Join(names, ", "), "none"))
	}

	return out, nil
}
