package packages

import (
	"slices"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader"
)

// origin is what a package is loaded from.
type origin struct {
	// image is the reference of the image; empty for manifests that the repository has itself.
	image string
	// files are these manifests, and digest is theirs. Without files they are known by the digest alone.
	files  map[string]string
	digest string
	// version, repository and packageName are those of packageRef.
	version, repository, packageName string
	// declared is what the repository says of manifests that are no package.
	declared loader.Declared
}

// loadable reports whether the origin can be loaded.
func (o origin) loadable() bool { return o.image != "" || len(o.files) > 0 }

// String names the origin in messages.
func (o origin) String() string {
	if o.image != "" || o.version == "" {
		return o.image
	}
	return o.packageName + " " + o.version + " of " + o.repository
}

// choice is where the spec led to: its image, or the version that packageRef chose.
type choice struct {
	// origin is the chosen content, or else the installed one.
	origin origin
	// provider is the package that packageRef leads to.
	provider offers.Provider
	// candidates are the versions that may be chosen, the highest first: not all of them, where there are many.
	candidates []offers.Offered
	// reason and message are of the condition Resolved; empty where nothing was chosen.
	reason, message string
	// fits reports whether the installed version is one that packageRef would accept.
	fits bool
	// pending reports whether a repository that was never fetched may still offer a version.
	pending bool
}

func (c choice) chosen() bool { return c.reason == corev1alpha1.ReasonResolved }

// refused reports whether packageRef led to no version, so that the installed one stays.
func (c choice) refused() bool { return c.reason != "" && !c.chosen() }

// rememberedChoice is the choice that followed from a key, which identifies all that it depends on.
type rememberedChoice struct {
	key string
	choice
}

// rememberedProvider is the package that packageRef led to while all that this depends on has a key.
type rememberedProvider struct {
	key string
	offers.Provider
}

// installed returns the origin of the last unpacked content.
func installed(pkg corev1alpha1.GenericPackage) origin {
	resolved := pkg.PackageStatus().Resolved
	if resolved == nil {
		return origin{}
	}
	o := origin{image: resolved.Image}
	if resolved.Repository != "" {
		o.version, o.repository, o.packageName = resolved.Version, resolved.Repository, resolved.PackageName
	}
	if resolved.Image == "" {
		o.digest = resolved.Digest
	}
	return o
}

// packageName returns the name of the package that a Package installs; empty before that.
func packageName(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; resolved != nil {
		return resolved.PackageName
	}
	return ""
}

// choose selects among the versions that are offered of a package. pending are repositories that were never fetched.
func choose(
	pkg corev1alpha1.GenericPackage, provider offers.Provider, offered []offers.Offered, pending []string, request versions.Request,
) choice {
	if reason, message := provider.Refusal(); reason != "" {
		c := choice{origin: installed(pkg), reason: reason, message: message}
		c.await(pending)
		return c
	}
	candidates := make([]versions.Candidate, len(offered))
	for i, o := range offered {
		candidates[i] = o.Candidate()
	}
	selected := versions.Select(candidates, request)
	c := choice{provider: provider, reason: selected.Reason, message: provider.Describe(selected.Message)}
	if selected.Index >= 0 {
		c.origin = originOf(provider.Name, offered[selected.Index])
		c.candidates = offers.Fitting(pkg, offered, selected, request)
		return c
	}
	c.origin = installed(pkg)
	c.await(pending)
	if constraint, err := versions.ParseConstraint(request.Selection.Version); err == nil && request.Installed != "" {
		c.fits = constraint.Matches(request.Installed, request.Selection.Prereleases)
	}
	return c
}

// await notes of a refusal the repositories that may still change it.
func (c *choice) await(pending []string) {
	switch c.reason {
	case corev1alpha1.ReasonVersionInvalid, corev1alpha1.ReasonAmbiguousProvider:
		return
	}
	if len(pending) > 0 {
		c.pending, c.message = true, c.message+offers.NotFetched(pending)
	}
}

func originOf(name string, o offers.Offered) origin {
	from := origin{
		image: o.Version.Image, version: o.Version.Version, repository: o.Source(), packageName: name,
		declared: loader.Declared{Dependencies: o.Version.Dependencies, UniqueInScope: o.Version.UniqueInScope},
	}
	if o.Inline() {
		from.files, from.digest = o.Version.Files, offers.FilesDigest(o.Version.Files)
	}
	return from
}

func platformOf(env manifestsv1alpha1.PackageEnvironment, manager string) versions.Platform {
	p := versions.Platform{Kubernetes: env.Kubernetes.Version, Manager: manager}
	if env.OpenShift != nil {
		p.OpenShift = env.OpenShift.Version
	}
	return p
}

// reportChoice sets the condition Resolved.
func reportChoice(status *corev1alpha1.PackageStatus, pkg corev1alpha1.GenericPackage, c choice) {
	switch {
	case pkg.PackageSpec().PackageRef == nil:
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionResolved)
	case c.reason != "":
		conditions.Set(&status.Conditions, pkg.GetGeneration(), corev1alpha1.ConditionResolved, c.chosen(), c.reason, c.message)
	}
}

// mayMove reports whether the choice of a Package may change after some versions of its package were offered, changed
// or withdrawn.
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
