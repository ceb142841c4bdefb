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

// KindChanged enqueues the Packages that depend on a kind, which is served in another way, and
// reports whether there are any.
func (l *Ledger) KindChanged(gk schema.GroupKind) bool {
	return l.Changed(everywhere, func(name string) bool {
		apiVersion, kind, ok := strings.Cut(name, " ")
		gv, err := schema.ParseGroupVersion(apiVersion)
		return ok && err == nil && kind == gk.Kind && gv.Group == gk.Group
	})
}

// everywhere are the namespaces to which a change of the cluster matters.
func everywhere(string) bool { return true }

// Within returns the namespaces that a change in one namespace affects: Packages are resolved by
// the state of their namespace and of the cluster.
func Within(namespace string) func(string) bool {
	return func(other string) bool { return namespace == "" || other == namespace }
}

// OfferChanged enqueues the Packages that wait for an offer in a namespace, or in the cluster, by
// its states before and after a change.
func (l *Ledger) OfferChanged(namespace string, was, is *corev1alpha1.AvailablePackageSpec) {
	changed := names{was.PackageName: true, is.PackageName: true}
	for _, spec := range []*corev1alpha1.AvailablePackageSpec{was, is} {
		for i := range spec.Versions {
			changed.add(spec.Versions[i].Provides)
		}
	}
	l.Changed(Within(namespace), changed.has)
}

// names of packages and APIs.
type names map[string]bool

func (n names) has(name string) bool { return name != "" && n[name] }

// add adds APIs in the form in which plans wait for them.
func (n names) add(all []corev1alpha1.ProvidedAPI) {
	for _, api := range all {
		n[resolver.KeyOf(api.APIVersion, api.Kind)] = true
	}
}

// PackageChanged enqueues the dependents of a Package if it changed for them, and its dependencies
// if its requirements on them changed. before is nil if the Package was created, and after is nil
// if it was deleted.
func (l *Ledger) PackageChanged(ctx context.Context, before, after corev1alpha1.GenericPackage) error {
	was, is := factsOf(before), factsOf(after)
	in := l.reached(ctx, was, is)
	same := was != nil && is != nil && equality.Semantic.DeepEqual(was, is)
	// Packages that only change together can have been resolved before either had a status.
	if after != nil && Unsatisfied(after) && (before == nil || !Unsatisfied(before) || !same) {
		l.Changed(in, func(string) bool { return true })
	}
	if same {
		return nil
	}

	changed, instance := names{}, resolver.Instance{}
	for _, installed := range []*resolver.Installed{was, is} {
		if installed == nil {
			continue
		}
		instance, changed[installed.Package] = installed.Instance, true
		changed.add(installed.Provides)
		for _, req := range installed.Requirements {
			if req.Package != nil {
				changed[req.Package.Name] = true
			}
		}
	}

	l.Changed(in, changed.has)
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

// reached returns the namespaces that a change of a Package affects. A namespaced Package also
// affects ClusterPackages if it depends on one whose upgrades heed all dependents.
func (l *Ledger) reached(ctx context.Context, was, is *resolver.Installed) func(namespace string) bool {
	namespace, heeded := "", false
	for _, installed := range []*resolver.Installed{was, is} {
		if installed == nil {
			continue
		}
		namespace = installed.Namespace
		for _, req := range installed.Requirements {
			if req.Satisfier != nil && req.Satisfier.Namespace == "" && !heeded {
				pkg := l.Packages.Get(ctx, *req.Satisfier)
				heeded = pkg != nil && heedsAll(pkg)
			}
		}
	}

	own := Within(namespace)
	return func(other string) bool { return own(other) || heeded && other == "" }
}

// factsOf returns the facts about a package that resolutions read; nil for a package that does not
// exist.
func factsOf(pkg corev1alpha1.GenericPackage) *resolver.Installed {
	if pkg == nil {
		return nil
	}
	in := snapshot.InstalledOf(pkg)
	return &in
}

// satisfiersLeft returns the instances that satisfied a requirement of a package before, and no
// longer do.
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
