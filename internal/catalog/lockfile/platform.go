package lockfile

import (
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// covers reports whether inner constraints permit every cluster and manager that outer ones permit.
// Some clusters are OpenShift as well.
func covers(inner, outer []manifestsv1alpha1.PackageManifestConstraint) bool {
	for _, openShift := range []bool{false, true} {
		if !onPlatform(outer, openShift) {
			continue
		}
		if !onPlatform(inner, openShift) {
			return false
		}
	}

	platforms := []manifestsv1alpha1.PlatformName{manifestsv1alpha1.PlatformKubernetes, manifestsv1alpha1.PlatformLockstep}
	if onPlatform(outer, true) {
		platforms = append(platforms, manifestsv1alpha1.PlatformOpenShift)
	}

	return !slices.ContainsFunc(platforms, func(p manifestsv1alpha1.PlatformName) bool {
		return !coversVersions(ranges(inner, p), ranges(outer, p))
	})
}

// onPlatform reports whether constraints permit a cluster that is, or is not, OpenShift.
func onPlatform(constraints []manifestsv1alpha1.PackageManifestConstraint, openShift bool) bool {
	for _, c := range constraints {
		if len(c.Platform) > 0 && !openShift && !slices.Contains(c.Platform, manifestsv1alpha1.PlatformKubernetes) {
			return false
		}
	}
	return true
}

// ranges returns the ranges of versions for one platform.
func ranges(constraints []manifestsv1alpha1.PackageManifestConstraint, platform manifestsv1alpha1.PlatformName) []string {
	var out []string
	for _, c := range constraints {
		if c.PlatformVersion != nil && c.PlatformVersion.Name == platform {
			out = append(out, c.PlatformVersion.Range)
		}
	}
	return out
}

// coversVersions reports whether inner ranges permit every version that outer ones permit, checking
// the versions that ranges name and their neighbours. It returns false for a very large number of
// them, so that a repository cannot keep its reader busy.
func coversVersions(inner, outer []string) bool {
	const most = 5000
	if len(inner) == 0 {
		return true
	}
	versions := neighbours(append(slices.Clone(inner), outer...))
	within, ok := parsed(inner)
	around, also := parsed(outer)
	if len(versions) > most || len(versions)*(len(inner)+len(outer)) > 100*most || !ok || !also {
		return false
	}
	return !slices.ContainsFunc(versions, func(v *semver.Version) bool { return around(v) && !within(v) })
}

// parsed returns a predicate for versions within all ranges. ok is false if a range is invalid.
func parsed(texts []string) (within func(*semver.Version) bool, ok bool) {
	ranges := make([]*semver.Constraints, len(texts))
	for i, text := range texts {
		r, err := manifest.ParseRange(text)
		if err != nil {
			return nil, false
		}
		ranges[i] = r
	}
	return func(v *semver.Version) bool {
		return !slices.ContainsFunc(ranges, func(r *semver.Constraints) bool { return !r.Check(v) })
	}, true
}

// versionInRange matches a version in the text of a range, with or without minor and patch.
var versionInRange = regexp.MustCompile(`\d+(\.\d+){0,2}`)

// neighbours returns the versions that ranges name, and the next lower and higher ones in each of
// their parts.
func neighbours(ranges []string) []*semver.Version {
	const beyond = 1_000_000
	out := []*semver.Version{semver.New(0, 0, 0, "", ""), semver.New(beyond, 0, 0, "", "")}
	for _, text := range ranges {
		for _, named := range versionInRange.FindAllString(text, -1) {
			v, err := semver.NewVersion(named)
			if err != nil {
				continue
			}
			major, minor, patch := v.Major(), v.Minor(), v.Patch()
			for _, n := range [][3]uint64{
				{major, minor, patch}, {major, minor, patch + 1}, {major, minor, patch - 1},
				{major, minor + 1, 0}, {major, minor - 1, beyond}, {major, minor, beyond},
				{major + 1, 0, 0}, {major - 1, beyond, beyond}, {major, beyond, beyond},
			} {
				if n[0] > 2*beyond || n[1] > 2*beyond || n[2] > 2*beyond {
					continue // one below 0
				}
				out = append(out, semver.New(n[0], n[1], n[2], "", ""))
			}
		}
	}

	return out
}
