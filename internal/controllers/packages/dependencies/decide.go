package dependencies

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Input is the input of a decision for a Package.
type Input struct {
	Package corev1alpha1.GenericPackage
	// Root is the Package with its requirements, or with the versions that it can have.
	Root      resolver.Root
	Known     Known
	Catalogue resolver.Catalogue
	Served    resolver.Served
	Platform  versions.Platform
	// TakesPart reports whether the dependencies of another Package are considered before they are
	// satisfied.
	TakesPart func(corev1alpha1.GenericPackage) bool
	// Versions returns the versions that a Package can have, and whether its requirements are known
	// without them.
	Versions func(corev1alpha1.GenericPackage) (known bool, all []resolver.RootVersion, err error)
	// WasAvailable reports whether a revision of a package was available at any time.
	WasAvailable func(resolver.Instance) bool
}

// Decide returns the plan for the requirements of a Package.
func Decide(in Input) (*Plan, error) {
	plan, err := in.solve(in.resolver())
	if err != nil {
		return nil, err
	}
	return planOf(in.Package, plan), nil
}

// DecideVersion decides which version a Package gets. If it is not the preferred one, alone is the
// result of the preferred version without other Packages. awaited names the packages and APIs that
// the decision was made from.
func DecideVersion(in Input) (own, alone resolver.Result, awaited []string, err error) {
	r := in.resolver()
	plan, err := in.solve(r)
	if err != nil {
		return own, alone, nil, err
	}

	own, awaited = plan.Results[0], plan.Awaited
	if own.Version != in.Root.Versions[0].Version {
		preferred := in.Root
		preferred.Versions = in.Root.Versions[:1]
		other := r.Solve([]resolver.Root{preferred})
		alone, awaited = other.Results[0], slices.Concat(awaited, other.Awaited)
	}

	return own, alone, awaited, nil
}

// resolver returns the resolver for a Package. A Package in another cluster finds no installed or
// offered packages.
func (in Input) resolver() *resolver.Resolver {
	all := resolver.Input{
		Roots: []resolver.Root{in.Root}, Installed: snapshot.InstalledFor(in.Root, in.Known.Installed, in.WasAvailable), Catalogue: in.Catalogue, Served: in.Served, Platform: in.Platform,
	}
	if remote(in.Package) {
		all.Installed, all.Catalogue = nil, nothing{}
	}
	return resolver.New(all)
}

// solve resolves a Package together with all Packages of its scope whose dependencies are open and
// that lead to a package that it leads to, so that the result does not depend on the order of
// reconciles. If the Package fails, or does not get the version that it prefers, Packages that can
// move to a higher version take part, too: two Packages that share a package in one version can
// only change it at the same time. The plan has the result of the Package alone, and the steps that
// it has to take itself.
func (in Input) solve(r *resolver.Resolver) (resolver.Plan, error) {
	root := in.Root
	open, movable, err := in.otherRoots()
	if err != nil {
		return resolver.Plan{}, err
	}

	open = r.Related(root, open)
	plan := r.Solve(append(open, root))
	own := resultOf(plan, root.Instance)
	if own.Failed() || len(root.Versions) > 0 && own.Version != root.Versions[0].Version {
		if movable = r.Related(root, movable); len(movable) > 0 {
			with := r.Solve(slices.Concat(open, movable[:min(len(movable), limits.UpgradesTogether)], []resolver.Root{root}))
			if moved := resultOf(with, root.Instance); !moved.Failed() && (own.Failed() || moved.Version != own.Version) {
				plan, own = with, moved
			}
		}
	}

	steps := stepsOf(plan.Steps, root.Instance)
	if own.Failed() {
		steps = nil
	}
	return resolver.Plan{Steps: steps, Results: []resolver.Result{own}, Awaited: plan.Awaited}, nil
}

// resultOf returns the result of one root, which every plan has.
func resultOf(plan resolver.Plan, of resolver.Instance) resolver.Result {
	at := slices.IndexFunc(plan.Results, func(r resolver.Result) bool { return r.Instance == of })
	return plan.Results[at]
}

// otherRoots returns the Packages that are resolved together with this one: the ones whose
// dependencies are open, and the ones that can move to a higher version. A generated package has
// its requirements from the Packages that it was generated for, and a package that dependents can
// change has its version from them.
func (in Input) otherRoots() (open, movable []resolver.Root, err error) {
	root := in.Root
	if Generated(in.Package) || root.UserManaged || remote(in.Package) {
		return nil, nil, nil
	}

	for _, at := range slices.SortedFunc(maps.Keys(in.Known.Packages), resolver.Instance.Compare) {
		pkg := in.Known.Packages[at]
		if at.Namespace != root.Namespace || at == root.Instance || !in.TakesPart(pkg) {
			continue
		}
		known, all, err := in.Versions(pkg)
		if err != nil {
			return nil, nil, err
		}
		other := RootOf(pkg, Recorded(pkg.PackageStatus()))
		other.Versions = all
		switch {
		case len(all) == 0 && !known || other.UserManaged:
		case len(all) > 0 && len(all[0].Dependencies) == 0: // it takes that, regardless of other packages' needs
		case isOpen(pkg):
			open = append(open, other)
		case len(all) > 1 && all[0].Version != other.Version:
			movable = append(movable, other)
		}
	}

	return open, movable, nil
}

// TakesPart reports whether the dependencies of a user's Package count for others before they are
// satisfied. A Package that cannot be installed does not hold up others.
func TakesPart(pkg corev1alpha1.GenericPackage) bool {
	i := snapshot.InstalledOf(pkg)
	return !i.Generated && !i.Changeable && !i.Deleting && !pkg.PackageSpec().Paused && !remote(pkg) && !broken(pkg)
}

// broken reports whether the content of the spec could not be loaded.
func broken(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == pkg.GetGeneration()
}

// isOpen reports whether it is not known that the dependencies of a Package are available, for its
// desired version.
func isOpen(pkg corev1alpha1.GenericPackage) bool {
	status, own := pkg.PackageStatus(), snapshot.InstalledOf(pkg)
	if status.Resolved == nil || status.ObservedGeneration != pkg.GetGeneration() || status.Resolved.Version != own.Version {
		return true
	}
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionDependenciesReady)
	return c != nil && c.Status != metav1.ConditionTrue
}

// VersionsOf returns the versions that a Package can have, with their dependencies. The record of a
// version takes the place of its repository's.
func VersionsOf(pkg corev1alpha1.GenericPackage, all []offers.Offered) []resolver.RootVersion {
	of := snapshot.RootVersions(all, pkg.PackageSpec().Dependencies)
	status, target := pkg.PackageStatus(), snapshot.InstalledOf(pkg).Version
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionDependenciesReady)
	if c == nil || c.ObservedGeneration != pkg.GetGeneration() || status.Resolved == nil || status.Resolved.Version != target {
		return of
	}
	for i := range of {
		if of[i].Version == target {
			of[i].Dependencies = Recorded(status)
		}
	}
	return of
}

// stepsOf returns the steps of a plan for several roots that one of them takes: the creations that
// it leads to and, if it leads to a change, all changes, because its own depend on the others.
// Other roots create the packages that only they lead to.
func stepsOf(steps []resolver.Step, root resolver.Instance) []resolver.Step {
	reached, changes := map[resolver.Instance]bool{root: true}, false
	for _, step := range slices.Backward(steps) {
		if slices.ContainsFunc(step.Needs, func(n resolver.Need) bool { return reached[n.Dependent] }) {
			reached[step.Instance] = true
			changes = changes || !step.Create && step.From != step.Version
		}
	}

	taken := []resolver.Step{}
	for _, step := range steps {
		if !step.Create && step.From == step.Version {
			continue // it is there
		}
		if reached[step.Instance] || changes && !step.Create {
			taken = append(taken, step)
		}
	}

	return taken
}

// RootOf returns a Package as it was rolled out last, with some requirements.
func RootOf(pkg corev1alpha1.GenericPackage, required []corev1alpha1.Dependency) resolver.Root {
	own, managed := snapshot.InstalledOf(pkg), pkg.PackageSpec().Dependencies
	return resolver.Root{
		Instance: own.Instance, Package: own.Package, Version: own.Version, Unique: own.Unique, Dependencies: required,
		UserManaged: managed != nil && managed.Management == corev1alpha1.DependencyManagementUser,
	}
}

// Recorded returns the requirements that a status records.
func Recorded(status *corev1alpha1.PackageStatus) []corev1alpha1.Dependency {
	required := []corev1alpha1.Dependency{}
	for _, d := range status.Dependencies {
		if !Dropped(d) {
			required = append(required, d.Dependency)
		}
	}
	return required
}

// Unsatisfied reports whether a Package was last found to have dependencies that cannot be
// satisfied.
func Unsatisfied(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionDependenciesReady)
	return c != nil && c.Reason == corev1alpha1.ReasonDependenciesUnsatisfied && !pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil
}

// nothing is a catalogue without offers.
type nothing struct{}

// Offers returns none.
func (nothing) Offers(string, string) []resolver.Offer { return nil }

// Providers returns none.
func (nothing) Providers(string, corev1alpha1.ProvidedAPI) []string { return nil }

// Once remembers the answers of read. Whether an API has some fields is read from the API server,
// once in a reconcile; whether an API is served needs no request.
func Once(read resolver.Served) resolver.Served {
	type answer struct {
		served  bool
		missing []string
	}

	known := map[string]answer{}
	return func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		if len(api.FieldPaths) == 0 {
			return read(api)
		}
		key := resolver.KeyOf(api.APIVersion, api.Kind) + " " + strings.Join(api.FieldPaths, " ")
		if _, found := known[key]; !found {
			served, missing := read(api)
			known[key] = answer{served, missing}
		}
		return known[key].served, known[key].missing
	}
}
