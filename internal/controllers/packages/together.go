package packages

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// together resolves the root of a failed resolution with others that failed, since two that share a package in one version
// can only change it at the same time: with each of those that lead to a package on which the result depends, and then with
// all of these. Those of other namespaces change nothing that this one may change. The plan is the failed one where that does
// not help either.
func together(r *resolver.Resolver, own resolver.Root, alone resolver.Plan, packages map[resolver.Instance]corev1alpha1.GenericPackage) resolver.Plan {
	var others []resolver.Root
	for _, at := range slices.SortedFunc(maps.Keys(packages), resolver.Instance.Compare) {
		if at != own.Instance && at.Namespace == own.Namespace && unsatisfied(packages[at]) && leadsTo(packages, at, alone.Awaited) {
			others = append(others, rootOf(packages[at], recorded(packages[at].PackageStatus())))
		}
	}
	sets := [][]resolver.Root{}
	for _, other := range others[:min(len(others), limits.UpgradesTogether)] {
		sets = append(sets, []resolver.Root{other})
	}
	if len(others) > 1 {
		sets = append(sets, others)
	}
	for _, set := range sets {
		plan := r.Solve(append([]resolver.Root{own}, set...))
		for _, result := range plan.Results {
			if result.Instance == own.Instance && !failed(result) {
				return resolver.Plan{Steps: stepsOf(plan.Steps, own.Instance), Results: []resolver.Result{result}, Awaited: plan.Awaited}
			}
		}
	}
	return alone
}

// leadsTo reports whether a Package is one of some packages, or depends on one, directly or by way of others.
func leadsTo(packages map[resolver.Instance]corev1alpha1.GenericPackage, from resolver.Instance, names []string) bool {
	seen, todo := map[resolver.Instance]bool{}, []resolver.Instance{from}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		pkg := packages[next]
		if seen[next] || pkg == nil {
			continue
		}
		seen[next] = true
		if slices.Contains(names, snapshot.InstalledOf(pkg).Package) {
			return true
		}
		for _, d := range pkg.PackageStatus().Dependencies {
			if ref := d.PackageRef; ref != nil {
				todo = append(todo, resolver.Instance{Namespace: ref.Namespace, Name: ref.Name})
			}
		}
	}
	return false
}

// unsatisfied reports whether a Package was last found to have dependencies that cannot be satisfied.
func unsatisfied(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionDependenciesReady)
	return c != nil && c.Reason == corev1alpha1.ReasonDependenciesUnsatisfied && !pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil
}

// stepsOf returns the steps of a plan for several roots that one of them takes: all changes, which its own depend on, and
// the creations that it leads to. What only others lead to is created by them.
func stepsOf(steps []resolver.Step, root resolver.Instance) []resolver.Step {
	reached, taken := map[resolver.Instance]bool{root: true}, []resolver.Step{}
	for _, step := range slices.Backward(steps) {
		leads := slices.ContainsFunc(step.Needs, func(n resolver.Need) bool { return reached[n.Dependent] })
		if leads {
			reached[step.Instance] = true
		}
		if leads || !step.Create {
			taken = append(taken, step)
		}
	}
	slices.Reverse(taken)
	return taken
}

// rootOf returns a Package as it was rolled out last, with some requirements.
func rootOf(pkg corev1alpha1.GenericPackage, required []corev1alpha1.Dependency) resolver.Root {
	own, managed := snapshot.InstalledOf(pkg), pkg.PackageSpec().Dependencies
	return resolver.Root{
		Instance: own.Instance, Package: own.Package, Version: own.Version, Unique: own.Unique, Dependencies: required,
		UserManaged: managed != nil && managed.Management == corev1alpha1.DependencyManagementUser,
	}
}

// recorded returns what a status says that is required.
func recorded(status *corev1alpha1.PackageStatus) []corev1alpha1.Dependency {
	required := []corev1alpha1.Dependency{}
	for _, d := range status.Dependencies {
		if !dropped(d) {
			required = append(required, d.Dependency)
		}
	}
	return required
}

// failed reports whether waiting does not help a root.
func failed(result resolver.Result) bool {
	return !result.Ready && result.Reason != corev1alpha1.ReasonWaitingForDependencies
}
