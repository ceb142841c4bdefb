package graph

import (
	"cmp"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Lock has the installed packages, with the digests that pin them. Its fields are stable;
// equal clusters have equal locks.
type Lock struct {
	Packages []LockedPackage `json:"packages"`
	// APIs that packages bring, with the package that does.
	APIs []LockedAPI `json:"apis"`
}

// LockedPackage is an installed package as it was unpacked last.
type LockedPackage struct {
	Key
	Package   string `json:"package,omitempty"`
	Version   string `json:"version,omitempty"`
	Image     string `json:"image,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Source    string `json:"repository,omitempty"`
	Generated bool   `json:"generated,omitempty"`
	// Unique is the scope in which it may be installed once.
	Unique       corev1alpha1.UniqueScope `json:"uniqueInScope,omitempty"`
	Dependencies []LockedDependency       `json:"dependencies,omitempty"`
}

// LockedDependency is a dependency, and what satisfies it.
type LockedDependency struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
	Package  string `json:"package,omitempty"`
	Range    string `json:"range,omitempty"`
	API      string `json:"api,omitempty"`
	To       *Key   `json:"to,omitempty"`
	Version  string `json:"version,omitempty"`
	// Unsatisfied is the reason for which it is not satisfied.
	Unsatisfied string `json:"unsatisfied,omitempty"`
}

// LockedAPI is an API that CustomResourceDefinitions of packages define.
type LockedAPI struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Owners are the packages that bring it: one, unless packages contradict each other.
	Owners []Key `json:"owners"`
}

// Lock returns the lock of nodes.
func (g *Graph) Lock(nodes []*Node) Lock {
	l := Lock{Packages: []LockedPackage{}, APIs: []LockedAPI{}}
	owners := map[corev1alpha1.ProvidedAPI][]Key{}
	for _, n := range nodes {
		p := LockedPackage{Key: n.Key, Package: n.Package, Version: n.Version, Generated: n.Generated}
		if r := n.pkg.PackageStatus().Resolved; r != nil {
			p.Image, p.Digest, p.Source, p.Unique = r.Image, r.Digest, r.Repository, r.UniqueInScope
			for _, api := range r.Provides {
				owners[api] = append(owners[api], n.Key)
			}
		}
		for _, e := range n.Dependencies {
			d := LockedDependency{Name: e.Name, Optional: e.Optional, Package: e.Package, Range: e.Range, API: e.API, To: e.To, Version: e.Version}
			if !e.Satisfied {
				d.Unsatisfied = cmp.Or(e.Reason, "Unknown")
			}
			p.Dependencies = append(p.Dependencies, d)
		}
		slices.SortFunc(p.Dependencies, func(a, b LockedDependency) int { return cmp.Compare(a.Name, b.Name) })
		l.Packages = append(l.Packages, p)
	}
	for api, by := range owners {
		l.APIs = append(l.APIs, LockedAPI{APIVersion: api.APIVersion, Kind: api.Kind, Owners: by})
	}
	slices.SortFunc(l.APIs, func(a, b LockedAPI) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return l
}
