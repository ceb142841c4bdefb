package packages

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// solve resolves a Package together with all Packages of its scope whose dependencies are open and that lead to something that
// it leads to, so that the result does not depend on which of them is reconciled first. Where the Package fails, or does not get
// the version that it prefers, those take part, too, that may move to a higher version: two that share a package in one version
// can only change it at the same time. The plan has the result of the Package alone, and the steps that are its own to take.
func (s *reconciliation) solve(ctx context.Context, r *resolver.Resolver, root resolver.Root, k known) (resolver.Plan, error) {
	open, movable, err := s.beside(ctx, root, k)
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

func resultOf(plan resolver.Plan, of resolver.Instance) resolver.Result {
	at := slices.IndexFunc(plan.Results, func(r resolver.Result) bool { return r.Instance == of })
	return plan.Results[at]
}

// beside returns the Packages that are resolved together with one, as roots: those whose dependencies are open, and those that may
// move to a higher version. What was generated has its requirements from those that it was generated for, and what dependents
// may change has its version from them.
func (s *reconciliation) beside(ctx context.Context, root resolver.Root, k known) (open, movable []resolver.Root, err error) {
	if generated(s.pkg) || root.UserManaged || remote(s.pkg) {
		return nil, nil, nil
	}
	for _, at := range slices.SortedFunc(maps.Keys(k.packages), resolver.Instance.Compare) {
		pkg := k.packages[at]
		if at.Namespace != root.Namespace || at == root.Instance || !s.takesPart(pkg) {
			continue
		}
		known, all, err := s.versionsOf(ctx, pkg)
		if err != nil {
			return nil, nil, err
		}
		other := rootOf(pkg, recorded(pkg.PackageStatus()))
		other.Versions = all
		switch {
		case len(all) == 0 && !known || other.UserManaged:
		case len(all) > 0 && len(all[0].Dependencies) == 0: // it takes that, whatever others need
		case isOpen(pkg):
			open = append(open, other)
		case len(all) > 1 && all[0].Version != other.Version:
			movable = append(movable, other)
		}
	}
	return open, movable, nil
}

// takesPart reports whether the dependencies of a Package of a user count for others before they are satisfied. What cannot be
// installed holds up nothing else.
func (r *Reconciler) takesPart(pkg corev1alpha1.GenericPackage) bool {
	i := snapshot.InstalledOf(pkg)
	return !i.Generated && !i.Changeable && !i.Deleting && !pkg.PackageSpec().Paused && !remote(pkg) && r.Accounts.refusal(pkg) == "" && !broken(pkg)
}

// broken reports whether what the spec asks for could not be loaded.
func broken(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == pkg.GetGeneration()
}

// isOpen reports whether it is not known that the dependencies of a Package are available, for the version that it is to have.
func isOpen(pkg corev1alpha1.GenericPackage) bool {
	status, own := pkg.PackageStatus(), snapshot.InstalledOf(pkg)
	if status.Resolved == nil || status.ObservedGeneration != pkg.GetGeneration() || status.Resolved.Version != own.Version {
		return true
	}
	c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionDependenciesReady)
	return c != nil && c.Status != metav1.ConditionTrue
}

// versionsOf returns the versions that a Package with a packageRef may have, and whether its requirements are known without these:
// they were recorded.
func (r *Reconciler) versionsOf(ctx context.Context, pkg corev1alpha1.GenericPackage) (known bool, all []resolver.RootVersion, err error) {
	status, ref := pkg.PackageStatus(), pkg.PackageSpec().PackageRef
	known = meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionDependenciesReady) != nil
	if ref == nil {
		return known, nil, nil
	}
	env, waiting, err := r.Environment.For(pkg.GetNamespace())
	if err != nil || waiting {
		return known, nil, nil // it is reconciled once that is known
	}
	listed, err := r.listOffers(ctx, ref.Name, pkg.GetNamespace())
	if err != nil {
		return false, nil, err
	}
	offered := offers.Candidates(ref.Name, listed.local, listed.cluster, listed.visible)
	c := choose(pkg, offered, nil, offers.RequestOf(pkg, platformOf(env, r.Version)))
	return known, rootVersions(pkg, c.candidates), nil
}

// rootVersions returns versions that may be chosen with what they depend on. What is recorded of a version stands for what its
// repository says.
func rootVersions(pkg corev1alpha1.GenericPackage, all []origin) []resolver.RootVersion {
	status, target := pkg.PackageStatus(), snapshot.InstalledOf(pkg).Version
	versions := make([]resolver.RootVersion, len(all))
	for i, o := range all {
		versions[i] = resolver.RootVersion{
			Version: o.version, Unique: o.declared.UniqueInScope, Dependencies: snapshot.Overridden(o.declared.Dependencies, pkg.PackageSpec().Dependencies),
		}
		c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionDependenciesReady)
		if c != nil && c.ObservedGeneration == pkg.GetGeneration() && o.version == target && status.Resolved != nil && status.Resolved.Version == target {
			versions[i].Dependencies = recorded(status)
		}
	}
	return versions
}

// stepsOf returns the steps of a plan for several roots that one of them takes: the creations that it leads to, and where it leads
// to a change all of them, which its own depend on. What only others lead to is created by them.
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

// unsatisfied reports whether a Package was last found to have dependencies that cannot be satisfied.
func unsatisfied(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionDependenciesReady)
	return c != nil && c.Reason == corev1alpha1.ReasonDependenciesUnsatisfied && !pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil
}

// installedFor returns what is installed as a resolution for a Package finds it. What was generated in its scope and was never available
// is chosen anew for Packages of users, and stays as it is for what was generated itself.
func (r *Reconciler) installedFor(ctx context.Context, pkg corev1alpha1.GenericPackage, k known) []resolver.Installed {
	if managed := pkg.PackageSpec().Dependencies; managed != nil && managed.Management == corev1alpha1.DependencyManagementUser {
		return k.installed
	}
	all := slices.Clone(k.installed)
	for n := range all {
		i := &all[n]
		if !i.Generated || i.Namespace != pkg.GetNamespace() || i.Name == pkg.GetName() || i.Available || r.wasAvailable(ctx, i.Instance) {
			continue
		}
		i.Tentative = !generated(pkg)
		i.Changeable = i.Tentative
	}
	return all
}

// wasAvailable reports whether a revision of a package was available at any time.
func (r *Reconciler) wasAvailable(ctx context.Context, i resolver.Instance) bool {
	list := corev1alpha1.ScopeOf(i.Namespace).NewObjectSetList()
	err := r.Client.List(ctx, list, client.InNamespace(i.Namespace), client.MatchingLabels{corev1alpha1.PackageInstanceLabel: i.Name}, client.UnsafeDisableDeepCopy)
	return err != nil || slices.ContainsFunc(list.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		return meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
	})
}

// pause returns how long a new Package of a user waits before its dependencies are resolved, so that those that are applied together are
// resolved together: until no other of its scope is as new, and the requirements of these are known. It is bounded.
func (s *reconciliation) pause(ctx context.Context) time.Duration {
	if generated(s.pkg) || remote(s.pkg) || s.pkg.PackageStatus().Resolved != nil || len(s.pkg.PackageStatus().Dependencies) > 0 {
		return 0
	}
	short, long := s.Pace.Of(limits.ResolutionPause), s.Pace.Of(limits.ResolutionPauseMax)
	left := s.since(s.pkg, short)
	for _, cached := range s.packagesIn(s.pkg.GetNamespace()) {
		other, ok := s.Fresh.Latest(cached).(corev1alpha1.GenericPackage)
		if !ok || other.GetName() == s.pkg.GetName() || !s.takesPart(other) || other.PackageStatus().Resolved != nil {
			continue
		}
		left = max(left, s.since(other, short))
		if known, all, err := s.versionsOf(ctx, other); err == nil && !known && len(all) == 0 && other.PackageSpec().PackageRef == nil {
			left = max(left, short) // its image is being loaded
		}
	}
	return min(left, s.since(s.pkg, long))
}

// since returns what is left of a time that began when this process saw a Package first.
func (r *Reconciler) since(pkg corev1alpha1.GenericPackage, d time.Duration) time.Duration {
	r.memory.Lock()
	defer r.memory.Unlock()
	st := r.memory.states[keyOf(pkg)]
	if st == nil || st.uid != pkg.GetUID() {
		return d
	}
	return max(st.seen.Add(d).Sub(r.Now()), 0)
}

// chooseByNeeds takes the highest version whose dependencies can be satisfied, where there are several that fit. What is installed stays
// where there is none.
func (s *reconciliation) chooseByNeeds(ctx context.Context) error {
	all, installed := s.choice.candidates, s.pkg.PackageStatus().Resolved
	s.state.awaited = nil
	switch {
	case len(all) < 2 || len(all[0].declared.Dependencies) == 0 || remote(s.pkg):
		return nil
	case installed != nil && installed.Version == all[0].version:
		return nil // it is there already
	}
	k, apis := s.survey(ctx, s.pkg.GetNamespace()), &schemas{read: s.servedAPI()}
	root := rootOf(s.pkg, nil)
	if root.Versions = rootVersions(s.pkg, all); root.UserManaged {
		return nil
	}
	s.attend(keyOf(s.pkg))
	plan, alone, err := s.planVersions(ctx, root, k, apis.served)
	if err != nil {
		s.await(keyOf(s.pkg), nil)
		return err
	}
	s.state.awaited = plan.Awaited
	s.await(keyOf(s.pkg), plan.Awaited)
	own := plan.Results[0]
	at := slices.IndexFunc(all, func(o origin) bool { return o.version == own.Version })
	if own.Failed() {
		at = slices.IndexFunc(all, func(o origin) bool { return installed != nil && o.version == installed.Version })
	}
	if at <= 0 {
		return nil
	}
	s.choice.origin = all[at]
	s.choice.message = conditions.Cut(resolver.PassedOver(s.pkg.PackageSpec().PackageRef.Name, all[at].version, all[0].version, alone), limits.MessageBytes)
	return nil
}
