package choice

import (
	"cmp"
	"slices"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader"
)

// Origin is the source that a package is loaded from.
type Origin struct {
	// Image is the reference of the image; empty for manifests that the repository has itself.
	Image string
	// Files are these manifests, and digest is theirs. Without files they are known by the digest
	// alone.
	Files  map[string]string
	Digest string
	// version, repository and packageName come from packageRef.
	Version, Repository, PackageName string
	// Declared is the repository's information about manifests that are not a package.
	Declared loader.Declared
}

// Loadable reports whether the origin can be loaded.
func (o Origin) Loadable() bool { return o.Image != "" || len(o.Files) > 0 }

// String names the origin in messages.
func (o Origin) String() string {
	if o.Image != "" || o.Version == "" {
		return o.Image
	}
	return o.PackageName + " " + o.Version + " of " + o.Repository
}

// Choice is the result of the spec: its image, or the version that packageRef chose.
type Choice struct {
	// Origin is the chosen content, or else the installed one.
	Origin Origin
	// Provider is the package that packageRef leads to.
	Provider offers.Provider
	// Candidates are the versions that can be chosen, the highest first: not all of them, if there
	// are many.
	Candidates []offers.Offered
	// Reason and Message belong to the condition Resolved; empty if packageRef was not followed.
	Reason, Message string
	// Fits reports whether packageRef accepts the installed version.
	Fits bool
	// Pending reports whether a repository that was never fetched might still offer a version.
	Pending bool
}

// Chosen reports whether packageRef led to a version.
func (c Choice) Chosen() bool { return c.Reason == corev1alpha1.ReasonResolved }

// Refused reports whether packageRef led to no version, so that the installed one stays.
func (c Choice) Refused() bool { return c.Reason != "" && !c.Chosen() }

// Installed returns the origin of the last unpacked content.
func Installed(pkg corev1alpha1.GenericPackage) Origin {
	resolved := pkg.PackageStatus().Resolved
	if resolved == nil {
		return Origin{}
	}
	o := Origin{Image: resolved.Image}
	if resolved.Repository != "" {
		o.Version, o.Repository, o.PackageName = resolved.Version, resolved.Repository, cmp.Or(resolved.CatalogName, resolved.PackageName)
	}
	if resolved.Image == "" {
		o.Digest = resolved.Digest
	}
	return o
}

// choose selects among the offered versions of a package. pending are repositories that were never
// fetched. A version lower than the last one is refused only if wasAvailable: a version that never
// worked can be replaced by a lower one.
func choose(
	pkg corev1alpha1.GenericPackage, provider offers.Provider, offered []offers.Offered, pending []string, request versions.Request,
	wasAvailable func() bool,
) Choice {
	if reason, message := provider.Refusal(); reason != "" {
		c := Choice{Origin: Installed(pkg), Reason: reason, Message: message}
		c.mayYet(pending)
		return c
	}

	candidates := make([]versions.Candidate, len(offered))
	for i, o := range offered {
		candidates[i] = o.Candidate()
	}

	selected := versions.Select(candidates, request)
	if selected.Reason == corev1alpha1.ReasonDowngradeRefused && !wasAvailable() {
		request.AllowDowngrade = true
		selected = versions.Select(candidates, request)
	}

	c := Choice{Provider: provider, Reason: selected.Reason, Message: provider.Describe(selected.Message)}
	if selected.Index >= 0 {
		c.Origin = OriginOf(provider.Name, offered[selected.Index])
		c.Candidates = offers.Fitting(pkg, offered, selected, request)
		return c
	}

	c.Origin = Installed(pkg)
	c.mayYet(pending)
	c.Fits = offers.Keeps(request)
	return c
}

// mayYet adds the repositories that might still change a refusal.
func (c *Choice) mayYet(pending []string) {
	switch c.Reason {
	case corev1alpha1.ReasonVersionInvalid, corev1alpha1.ReasonAmbiguousProvider:
		return
	}
	if len(pending) > 0 {
		c.Pending, c.Message = true, c.Message+offers.NotFetched(pending)
	}
}

// OriginOf returns the content of an offer of a package.
func OriginOf(name string, o offers.Offered) Origin {
	from := Origin{
		Image: o.Version.Image, Version: o.Version.Version, Repository: o.Source(), PackageName: name,
		Declared: loader.Declared{Dependencies: o.Version.Dependencies, UniqueInScope: o.Version.UniqueInScope},
	}
	if o.Inline() {
		from.Files, from.Digest = o.Version.Files, offers.FilesDigest(o.Version.Files)
	}
	return from
}

// Report sets the condition Resolved.
func Report(status *corev1alpha1.PackageStatus, pkg corev1alpha1.GenericPackage, c Choice) {
	switch {
	case pkg.PackageSpec().PackageRef == nil:
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionResolved)
	case c.Reason != "":
		conditions.Set(&status.Conditions, pkg.GetGeneration(), corev1alpha1.ConditionResolved, c.Chosen(), c.Reason, c.Message)
	}
}

// mayMove reports whether the choice of a Package can change after some versions of its package
// were offered, changed or withdrawn.
func mayMove(pkg corev1alpha1.GenericPackage, changed []string) bool {
	spec := pkg.PackageSpec()
	if spec.PackageRef == nil || spec.Paused || len(changed) == 0 {
		return false
	}

	last := offers.LastAttempted(pkg, offers.NameOf(pkg))
	if last == nil || unresolved(pkg) {
		return true
	}

	constraint, err := versions.ParseConstraint(spec.PackageRef.Version)
	if err != nil {
		return true
	}

	from, err := semver.NewVersion(last.Version)
	return err != nil || slices.ContainsFunc(changed, func(version string) bool {
		to, err := semver.NewVersion(version)
		return version == last.Version || err == nil && !to.LessThan(from) && constraint.Matches(version, spec.PackageRef.Prereleases)
	})
}

// unresolved reports whether packageRef of a Package has led to no version so far.
func unresolved(pkg corev1alpha1.GenericPackage) bool {
	return !conditions.IsTrueFor(*pkg.StatusConditions(), corev1alpha1.ConditionResolved, pkg.GetGeneration())
}
