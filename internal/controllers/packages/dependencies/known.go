package dependencies

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Decision is being written for a Package: the dependencies that its status will have,
// and the packages that it deletes.
type Decision struct {
	Records []resolver.Requirement
	Deletes resolver.Instance
}

// Decisions are the decisions that are not written yet, by their Packages.
type Decisions map[resolver.Instance]Decision

// Known has the Packages that matter to a scope at one moment, for reading only.
type Known struct {
	Packages  map[resolver.Instance]corev1alpha1.GenericPackage
	Installed []resolver.Installed
}

// NewKnown returns Known of packages.
func NewKnown(packages map[resolver.Instance]corev1alpha1.GenericPackage) Known {
	k := Known{Packages: packages, Installed: make([]resolver.Installed, 0, len(packages))}
	for _, pkg := range packages {
		if !remote(pkg) {
			k.Installed = append(k.Installed, snapshot.InstalledOf(pkg))
		}
	}
	slices.SortFunc(k.Installed, func(a, b resolver.Installed) int { return a.Instance.Compare(b.Instance) })
	return k
}

// within reports whether all packages are of a namespace or of the cluster.
func (k Known) within(namespace string) bool {
	for i := range k.Packages {
		if i.Namespace != "" && i.Namespace != namespace {
			return false
		}
	}
	return true
}

// remote reports whether the objects of a Package are in another cluster, where packages do not
// satisfy dependencies.
func remote(pkg corev1alpha1.GenericPackage) bool { return pkg.PackageSpec().TargetRef != nil }

// apply adds the decisions as if they were written.
func (all Decisions) apply(installed []resolver.Installed) {
	deleted := map[resolver.Instance]bool{}
	for _, d := range all {
		deleted[d.Deletes] = true
	}

	for k := range installed {
		i := &installed[k]
		i.Deleting = i.Deleting || deleted[i.Instance]
		for _, record := range all[i.Instance].Records {
			if !slices.ContainsFunc(i.Requirements, func(was resolver.Requirement) bool { return equality.Semantic.DeepEqual(was, record) }) {
				i.Requirements = append(slices.Clip(i.Requirements), record)
			}
		}
	}
}

// Same reports whether a resolution that reads some packages and APIs has the same result as
// before. It ignores the availability of all other packages.
func Same(was, now Known, own resolver.Instance, awaited []string) bool {
	names := map[string]bool{}
	for _, name := range awaited {
		names[name] = true
	}

	facts := func(i resolver.Installed) resolver.Installed {
		matters := names[i.Package] || slices.ContainsFunc(i.Provides, func(api corev1alpha1.ProvidedAPI) bool {
			return names[resolver.KeyOf(api.APIVersion, api.Kind)]
		})
		i.Available = i.Available && matters
		return i
	}

	return slices.EqualFunc(was.Installed, now.Installed, func(a, b resolver.Installed) bool {
		return a.Instance == b.Instance && (a.Instance == own || equality.Semantic.DeepEqual(facts(a), facts(b)))
	})
}
