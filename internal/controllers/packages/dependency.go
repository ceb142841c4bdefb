package packages

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// dependencyView is what is known of the dependencies of a Package in one reconcile.
type dependencyView struct {
	// steps are what is installed and changed, and result is what becomes of the requirements.
	steps  []resolver.Step
	result resolver.Result
	// entries are those of the status: what is required, and behind it what only an earlier revision required.
	entries []corev1alpha1.DependencyStatus
	// err is why the plan could not be performed.
	err error
}

// requirements returns what a Package depends on; false while that is not known, or not to be acted upon.
func (v view) requirements() ([]corev1alpha1.Dependency, bool) {
	switch v.step {
	case stepDeploy:
		return snapshot.Overridden(v.attempt.Out.content.dependencies, v.pkg.PackageSpec().Dependencies), true
	case stepSync:
		return recorded(v.pkg.PackageStatus()), true
	}
	return nil, false
}

// dropped reports whether only an earlier revision requires a dependency.
func dropped(d corev1alpha1.DependencyStatus) bool {
	c := meta.FindStatusCondition(d.Conditions, corev1alpha1.ConditionSatisfied)
	return c != nil && c.Reason == corev1alpha1.ReasonNoLongerRequired
}

// entriesOf returns status.dependencies: the outcomes, and behind them what was recorded and is required no more.
func entriesOf(pkg corev1alpha1.GenericPackage, outcomes []resolver.Outcome) []corev1alpha1.DependencyStatus {
	before := map[string]corev1alpha1.DependencyStatus{}
	for _, d := range pkg.PackageStatus().Dependencies {
		before[d.Name] = d
	}
	entries := make([]corev1alpha1.DependencyStatus, 0, len(outcomes))
	for _, o := range outcomes {
		entry := corev1alpha1.DependencyStatus{Dependency: *o.Dependency.DeepCopy(), Version: o.Version}
		last := before[o.Dependency.Name]
		switch entry.PackageRef = last.PackageRef; {
		case o.Satisfier != nil:
			entry.PackageRef = o.Satisfier.Reference()
		case o.Satisfied && entry.PackageRef != nil && entry.PackageRef.Namespace != pkg.GetNamespace():
			entry.PackageRef = nil // an API that is served is satisfied without its owner
		}
		entry.Conditions = slices.Clone(last.Conditions)
		conditions.Set(&entry.Conditions, pkg.GetGeneration(), corev1alpha1.ConditionSatisfied, o.Satisfied, o.Reason, conditions.Message(o.Message))
		entries = append(entries, entry)
		delete(before, o.Dependency.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		entry := before[name]
		if entry.PackageRef == nil {
			continue
		}
		entry.Conditions = slices.Clone(entry.Conditions)
		conditions.Set(&entry.Conditions, pkg.GetGeneration(), corev1alpha1.ConditionSatisfied, true, corev1alpha1.ReasonNoLongerRequired,
			"The package requires it no more; it is released when the present revision is rolled out.")
		entries = append(entries, entry)
	}
	return entries
}

// sameRecords reports whether two lists require the same of the same packages, whatever their conditions.
func sameRecords(a, b []corev1alpha1.DependencyStatus) bool {
	return slices.EqualFunc(a, b, func(a, b corev1alpha1.DependencyStatus) bool {
		return equality.Semantic.DeepEqual(a.Dependency, b.Dependency) && equality.Semantic.DeepEqual(a.PackageRef, b.PackageRef)
	})
}

// reportDependencies sets status.dependencies, and the condition DependenciesReady where there are any.
func reportDependencies(status *corev1alpha1.PackageStatus, v view) {
	d := v.required
	if d == nil {
		return
	}
	status.Dependencies = d.entries
	if len(d.result.Outcomes) == 0 {
		status.Dependencies = slices.Clip(d.entries)
		meta.RemoveStatusCondition(&status.Conditions, corev1alpha1.ConditionDependenciesReady)
		return
	}
	ready, reason, message := d.ready()
	conditions.Set(&status.Conditions, v.pkg.GetGeneration(), corev1alpha1.ConditionDependenciesReady, ready, reason, conditions.Cut(conditions.Message(message), limits.MessageBytes))
}

// ready returns the condition DependenciesReady.
func (d *dependencyView) ready() (ready bool, reason, message string) {
	if d.err != nil {
		return false, corev1alpha1.ReasonDependenciesUnsatisfied, d.err.Error()
	}
	message = cmp.Or(d.result.Message, "All dependencies are available.")
	var waiting []string
	for _, o := range d.result.Outcomes {
		switch {
		case o.Satisfied || o.Dependency.Optional:
		case !o.Failed:
			waiting = append(waiting, o.Dependency.Name+": "+o.Message)
		case d.result.Reason == corev1alpha1.ReasonDependenciesUnsatisfied:
			return false, d.result.Reason, o.Reason + ": " + message
		}
	}
	if d.result.Reason == corev1alpha1.ReasonWaitingForDependencies {
		message = strings.Join(waiting, "\n")
	}
	return d.result.Ready, d.result.Reason, message
}

// stalled reports whether the dependencies cannot be had without help.
func (d *dependencyView) stalled() bool {
	return slices.ContainsFunc(d.result.Outcomes, func(o resolver.Outcome) bool { return o.Failed && !o.Dependency.Optional })
}

// inherit gives a generated package the settings of the one that it is installed for.
func inherit(pkg, parent corev1alpha1.GenericPackage, dependency string, direct bool) {
	from, to := parent.PackageSpec().DeepCopy(), pkg.PackageSpec()
	to.ServiceAccountName, to.ImagePullSecrets, to.ImagePullPolicy = from.ServiceAccountName, from.ImagePullSecrets, from.ImagePullPolicy
	to.Dependencies, to.ConfigFrom = nil, nil
	if d := from.Dependencies; d != nil {
		if d.Management != "" || d.DeletionPolicy != "" {
			to.Dependencies = &corev1alpha1.PackageDependencies{Management: d.Management, DeletionPolicy: d.DeletionPolicy}
		}
		for _, o := range d.Overrides {
			if direct && o.Name == dependency {
				to.ConfigFrom = o.ConfigFrom
			}
		}
	}
}

// holders returns the instances that a package waits for before it is torn down: those that depend on it. Of a cycle, the
// one whose name is the first does not wait for the others.
func holders(all []resolver.Installed, of resolver.Instance) []resolver.Instance {
	dependents := heededBy(all)
	mine := dependents.above(of)
	first := true
	for other := range mine {
		if dependents.above(other)[of] && other.Compare(of) < 0 {
			first = false
		}
	}
	held := slices.DeleteFunc(slices.Clone(dependents[of]), func(h resolver.Instance) bool {
		return first && dependents.above(h)[of]
	})
	slices.SortFunc(held, resolver.Instance.Compare)
	return held
}

// graph has the dependents of each instance.
type graph map[resolver.Instance][]resolver.Instance

// dependentsBy returns what depends on each instance, as recorded.
func dependentsBy(all []resolver.Installed) graph {
	return graphOf(all, func(resolver.Instance, resolver.Instance) bool { return true })
}

// heededBy leaves out dependents that an instance does not heed.
func heededBy(all []resolver.Installed) graph {
	at := map[resolver.Instance]*resolver.Installed{}
	for i := range all {
		at[all[i].Instance] = &all[i]
	}
	return graphOf(all, func(dependent, of resolver.Instance) bool { return at[of] == nil || at[of].Heeds(dependent) })
}

func graphOf(all []resolver.Installed, counts func(dependent, of resolver.Instance) bool) graph {
	g := graph{}
	for _, in := range all {
		for _, r := range in.Requirements {
			if at := r.Satisfier; at != nil && *at != in.Instance && counts(in.Instance, *at) && !slices.Contains(g[*at], in.Instance) {
				g[*at] = append(g[*at], in.Instance)
			}
		}
	}
	return g
}

// above returns all instances that depend on one, directly or by way of others.
func (g graph) above(from resolver.Instance) map[resolver.Instance]bool {
	seen, todo := map[resolver.Instance]bool{}, slices.Clone(g[from])
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if !seen[next] {
			seen[next] = true
			todo = append(todo, g[next]...)
		}
	}
	return seen
}
