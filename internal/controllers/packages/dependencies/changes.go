package dependencies

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// KindChanged enqueues the Packages that depend on a kind, which is served in another way, and reports whether there are any.
func (l *Ledger) KindChanged(gk schema.GroupKind) bool {
	return l.Changed(func(name string) bool {
		apiVersion, kind, ok := strings.Cut(name, " ")
		gv, err := schema.ParseGroupVersion(apiVersion)
		return ok && err == nil && kind == gk.Kind && gv.Group == gk.Group
	})
}

// OfferChanged enqueues the Packages that wait for an offer, by its states before and after a change.
func (l *Ledger) OfferChanged(was, is *corev1alpha1.AvailablePackageSpec) {
	changed := names{was.PackageName: true, is.PackageName: true}
	for _, spec := range []*corev1alpha1.AvailablePackageSpec{was, is} {
		for i := range spec.Versions {
			changed.add(spec.Versions[i].Provides)
		}
	}
	l.Changed(changed.has)
}

// names of packages and APIs.
type names map[string]bool

func (n names) has(name string) bool { return name != "" && n[name] }

func (n names) add(all []corev1alpha1.ProvidedAPI) {
	for _, api := range all {
		n[resolver.KeyOf(api.APIVersion, api.Kind)] = true
	}
}

// PackageChanged enqueues the dependents of a Package if it changed for them, and its dependencies if it needs
// something else of them. One of the states is nil if it was created or deleted.
func (l *Ledger) PackageChanged(ctx context.Context, before, after corev1alpha1.GenericPackage) error {
	was, is := factsOf(before), factsOf(after)
	same := was != nil && is != nil && equality.Semantic.DeepEqual(was, is)
	// Packages that only change together can have been resolved before either had a status.
	if after != nil && Unsatisfied(after) && (before == nil || !Unsatisfied(before) || !same) {
		l.Changed(func(string) bool { return true })
	}
	if same {
		return nil
	}
	changed, instance := names{}, resolver.Instance{}
	for _, in := range []*resolver.Installed{was, is} {
		if in == nil {
			continue
		}
		instance, changed[in.Package] = in.Instance, true
		changed.add(in.Provides)
		for _, req := range in.Requirements {
			if req.Package != nil {
				changed[req.Package.Name] = true
			}
		}
	}
	l.Changed(changed.has)
	for _, left := range satisfiersLeft(was, is) {
		l.Enqueue(types.NamespacedName(left))
	}
	if was != nil && is != nil && sameFor(was, is) {
		return nil
	}
	dependents, err := l.Packages.DependentsOf(ctx, instance)
	for _, pkg := range dependents {
		l.Enqueue(types.NamespacedName{Namespace: pkg.GetNamespace(), Name: pkg.GetName()})
	}
	return err
}

func factsOf(pkg corev1alpha1.GenericPackage) *resolver.Installed {
	if pkg == nil {
		return nil
	}
	in := snapshot.InstalledOf(pkg)
	return &in
}

// satisfiersLeft returns the instances that satisfied a requirement of a package before, and none now.
func satisfiersLeft(was, is *resolver.Installed) (left []resolver.Instance) {
	if was == nil {
		return nil
	}
	for _, req := range was.Requirements {
		i := req.Satisfier
		if i != nil && (is == nil || !slices.ContainsFunc(is.Requirements, func(r resolver.Requirement) bool {
			return r.Satisfier != nil && *r.Satisfier == *i
		})) {
			left = append(left, *i)
		}
	}
	return left
}

// sameFor reports whether dependents find a package as it was.
func sameFor(was, is *resolver.Installed) bool {
	a, b := *was, *is
	a.Requirements, b.Requirements = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}
