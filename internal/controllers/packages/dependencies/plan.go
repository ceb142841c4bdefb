package dependencies

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

// Plan is the decision about the dependencies of a Package in one reconcile.
type Plan struct {
	// Steps are installs and changes, and Result has the outcome of each requirement.
	Steps  []resolver.Step
	Result resolver.Result
	// Entries are the entries of the status: the requirements, followed by requirements of earlier
	// revisions alone.
	Entries []corev1alpha1.DependencyStatus
	// Awaited are the names of packages and the APIs that it was resolved by.
	Awaited []string
	// Err is why the plan could not be performed.
	Err error
}

// planOf returns the plan for a Package alone.
func planOf(pkg corev1alpha1.GenericPackage, plan resolver.Plan) *Plan {
	d := &Plan{Awaited: plan.Awaited, Steps: plan.Steps, Result: resolver.Result{Ready: true}}
	if len(plan.Results) > 0 {
		d.Result = plan.Results[0]
	}
	for i := range d.Result.Outcomes {
		if o := &d.Result.Outcomes[i]; o.Failed {
			o.Satisfier = nil // a package that does not satisfy it must not hold it
		}
	}
	d.Entries = entriesOf(pkg, d.Result.Outcomes)
	return d
}

// Takes reports whether a step of the plan is about an instance.
func (d *Plan) Takes(i resolver.Instance) bool {
	return slices.ContainsFunc(d.Steps, func(s resolver.Step) bool { return s.Instance == i })
}

// Remains reports whether the packages that the plan uses exist and are not being deleted.
func (d *Plan) Remains(now Known) bool {
	uses := func(i resolver.Instance) bool {
		at, found := slices.BinarySearchFunc(now.Installed, i, func(in resolver.Installed, i resolver.Instance) int { return in.Compare(i) })
		return found && !now.Installed[at].Deleting
	}

	created := map[resolver.Instance]bool{}
	for _, step := range d.Steps {
		if created[step.Instance] = step.Create; !step.Create && !uses(step.Instance) {
			return false
		}
	}

	return !slices.ContainsFunc(d.Result.Outcomes, func(o resolver.Outcome) bool {
		return o.Satisfier != nil && o.Reason != corev1alpha1.ReasonNotAvailable && !created[*o.Satisfier] && !uses(*o.Satisfier)
	})
}

// Dropped reports whether only an earlier revision requires a dependency.
func Dropped(d corev1alpha1.DependencyStatus) bool {
	c := meta.FindStatusCondition(d.Conditions, corev1alpha1.ConditionSatisfied)
	return c != nil && c.Reason == corev1alpha1.ReasonNoLongerRequired
}

// entriesOf returns status.dependencies: the outcomes, followed by the recorded entries that are no
// longer required.
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

// SameRecords reports whether two lists have the same requirements and the same packages for them,
// regardless of their conditions.
func SameRecords(a, b []corev1alpha1.DependencyStatus) bool {
	return slices.EqualFunc(a, b, func(a, b corev1alpha1.DependencyStatus) bool {
		return equality.Semantic.DeepEqual(a.Dependency, b.Dependency) && equality.Semantic.DeepEqual(a.PackageRef, b.PackageRef)
	})
}

// Report sets status.dependencies, and the condition DependenciesReady if there are any.
func (d *Plan) Report(status *corev1alpha1.PackageStatus, generation int64) {
	if d == nil {
		return
	}
	status.Dependencies = d.Entries
	if len(d.Result.Outcomes) == 0 {
		status.Dependencies = slices.Clip(d.Entries)
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionDependenciesReady)
		return
	}
	ready, reason, message := d.Ready()
	conditions.Set(&status.Conditions, generation, corev1alpha1.ConditionDependenciesReady, ready, reason, conditions.Cut(conditions.Message(message), limits.MessageBytes))
}

// Ready returns the condition DependenciesReady.
func (d *Plan) Ready() (ready bool, reason, message string) {
	if d.Err != nil {
		return false, corev1alpha1.ReasonDependenciesUnsatisfied, d.Err.Error()
	}

	message = cmp.Or(d.Result.Message, "All dependencies are available.")
	var waiting []string
	for _, o := range d.Result.Outcomes {
		switch {
		case o.Satisfied || o.Dependency.Optional:
		case !o.Failed:
			waiting = append(waiting, o.Dependency.Name+": "+o.Message)
		case d.Result.Reason == corev1alpha1.ReasonDependenciesUnsatisfied:
			return false, d.Result.Reason, o.Reason + ": " + message
		}
	}

	if d.Result.Reason == corev1alpha1.ReasonWaitingForDependencies {
		message = strings.Join(waiting, "\n")
	}
	return d.Result.Ready, d.Result.Reason, message
}

// Stalled reports whether the dependencies cannot be had without help.
func (d *Plan) Stalled() bool {
	return slices.ContainsFunc(d.Result.Outcomes, func(o resolver.Outcome) bool { return o.Failed && !o.Dependency.Optional })
}

// refersTo reports whether any entry is satisfied by a package.
func refersTo(entries []corev1alpha1.DependencyStatus, ref *corev1alpha1.DependencyReference) bool {
	return slices.ContainsFunc(entries, func(d corev1alpha1.DependencyStatus) bool {
		return d.PackageRef != nil && ref != nil && *d.PackageRef == *ref
	})
}

// Released splits the entries: the ones that only an earlier revision required and no other package
// requires, and the ones that stay.
func (d *Plan) Released() (released, kept []corev1alpha1.DependencyStatus) {
	kept = slices.DeleteFunc(slices.Clone(d.Entries), Dropped)
	for _, entry := range d.Entries {
		if Dropped(entry) && !refersTo(kept, entry.PackageRef) {
			released = append(released, entry)
		}
	}
	return released, kept
}

// Decision returns the part of the plan that counts for others before it is written.
func (d *Plan) Decision() Decision {
	decided := Decision{}
	for _, r := range snapshot.RequirementsOf(&corev1alpha1.PackageStatus{Dependencies: d.Entries}) {
		if r.Satisfier != nil {
			decided.Records = append(decided.Records, r)
		}
	}
	return decided
}
