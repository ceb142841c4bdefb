package dependencies

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Holders returns the instances that a package waits for before it is torn down: its dependents. In
// a cycle, the one with the first name does not wait for the others.
func Holders(all []resolver.Installed, of resolver.Instance) []resolver.Instance {
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

// Graph has the dependents of each instance.
type Graph map[resolver.Instance][]resolver.Instance

// DependentsBy returns the recorded dependents of each instance.
func DependentsBy(all []resolver.Installed) Graph {
	return graphOf(all, func(resolver.Instance, resolver.Instance) bool { return true })
}

// heededBy leaves out dependents that an instance does not heed.
func heededBy(all []resolver.Installed) Graph {
	at := map[resolver.Instance]*resolver.Installed{}
	for i := range all {
		at[all[i].Instance] = &all[i]
	}
	return graphOf(all, func(dependent, of resolver.Instance) bool { return at[of] == nil || at[of].Heeds(dependent) })
}

// graphOf returns the dependents of each instance, as far as they count.
func graphOf(all []resolver.Installed, counts func(dependent, of resolver.Instance) bool) Graph {
	g := Graph{}
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
func (g Graph) above(from resolver.Instance) map[resolver.Instance]bool {
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

// ReportHold sets the condition DeletionHeld.
func ReportHold(status *corev1alpha1.PackageStatus, generation int64, by []resolver.Instance) {
	if len(by) == 0 {
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionDeletionHeld)
		return
	}
	conditions.Set(&status.Conditions, generation, corev1alpha1.ConditionDeletionHeld, true, corev1alpha1.ReasonRequired, HeldMessage(by))
}

// HeldMessage describes the packages that a deleted Package waits for.
func HeldMessage(by []resolver.Instance) string {
	names := make([]string, len(by))
	for i := range by {
		names[i] = by[i].String()
	}
	return "Waiting for its dependents to be deleted: " + FirstOf(names) +
		". Delete these, or annotate this package with " + corev1alpha1.DeleteRequiredAnnotation + "=true."
}

// FirstOf joins the first of some names, and counts the others.
func FirstOf(names []string) string {
	if more := len(names) - limits.NearestVersions; more > 0 {
		names = append(slices.Clone(names[:limits.NearestVersions]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Refusing returns which dependents of an instance do not accept a version, with their ranges,
// sorted; all for no version.
func Refusing(dependents []corev1alpha1.GenericPackage, of resolver.Instance, version string) []string {
	v, _ := versions.Parse(version)
	var names []string
	for _, pkg := range dependents {
		for _, r := range snapshot.RequirementsOf(pkg.PackageStatus()) {
			if r.Satisfier == nil || *r.Satisfier != of {
				continue
			}
			text := snapshot.InstanceOf(pkg).String()
			if version != "" {
				if r.Package == nil || v == nil {
					continue
				}
				if c, err := versions.ParseConstraint(r.Package.Version); err != nil || c.Admits(v, &corev1alpha1.Prereleases{}) {
					continue
				}
				text += " (" + r.Package.Version + ")"
			}
			names = append(names, text)
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// Elsewhere returns the names of instances of other scopes.
func Elsewhere(own resolver.Instance, all []resolver.Instance) []string {
	var names []string
	for _, i := range all {
		if i.Namespace != own.Namespace {
			names = append(names, i.String())
		}
	}
	slices.Sort(names)
	return names
}
