package load

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/inputs/targets"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// installation is a Package as an installation of a package that can be installed only once. The
// first of two Packages to claim the name is installed. The lock of the memory guards it.
type installation struct {
	// recorded is the name that the status had at the last reconcile.
	recorded string
	// claimed is the name of the package that is being loaded; the status might lack it yet.
	claimed string
	// others are the other installations: when one of them is deleted, the Package is retried.
	others      map[types.NamespacedName]struct{}
	retryNumber int
}

// NoteInstallation retries others if a Package became an installation of another package.
func (l *Loads) NoteInstallation(p *Package, pkg corev1alpha1.GenericPackage) {
	l.attempts.Lock()
	before, now := p.recorded, packageName(pkg)
	p.recorded = now
	l.attempts.Unlock()
	if before != "" && before != now {
		l.retryOthers(client.ObjectKeyFromObject(pkg))
	}
}

// claim claims the name of a package, and returns its other installations in the namespace, or for
// a ClusterPackage in the cluster, sorted. The loader decides on conflicts.
func (l *Loads) claim(ctx context.Context, p *Package, own types.NamespacedName, name string) ([]types.NamespacedName, error) {
	others, all := map[types.NamespacedName]struct{}{}, map[types.NamespacedName]corev1alpha1.GenericPackage{}
	packages, err := choice.ListPackages(ctx, l.Cache, "")
	if err != nil {
		return nil, err
	}

	for _, pkg := range packages {
		all[client.ObjectKeyFromObject(pkg)] = pkg
		if packageName(pkg) == name {
			others[client.ObjectKeyFromObject(pkg)] = struct{}{}
		}
	}

	l.attempts.Lock()
	defer l.attempts.Unlock()
	for key, other := range l.packages {
		if other.claimed == name {
			others[key] = struct{}{}
		}
	}

	maps.DeleteFunc(others, func(key types.NamespacedName, _ struct{}) bool {
		return key == own || key.Namespace != own.Namespace || all[own] != nil && all[key] != nil && !sameTarget(all[own], all[key])
	})
	p.claimed, p.others = name, others
	return slices.SortedFunc(maps.Keys(others), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }), nil
}

// releaseClaim gives up the claim of a failed load, unless the Package is installed under that
// name: two Packages that are refused because of each other must not enqueue each other forever.
func (l *Loads) releaseClaim(p *Package, own types.NamespacedName) {
	l.attempts.Lock()
	claimed := p.claimed
	p.claimed = ""
	l.attempts.Unlock()
	if claimed == "" {
		return
	}

	packages, _ := choice.ListPackages(l.Life, l.Cache, "") // without them others are retried
	if slices.ContainsFunc(packages, func(pkg corev1alpha1.GenericPackage) bool {
		return client.ObjectKeyFromObject(pkg) == own && packageName(pkg) == claimed
	}) {
		return
	}

	l.retryOthers(own)
}

// retryOthers enqueues the packages whose load was refused because of an installation that has
// changed.
func (l *Loads) retryOthers(key types.NamespacedName) {
	var waiting []types.NamespacedName
	l.attempts.Lock()
	for other, p := range l.packages {
		if _, ok := p.others[key]; ok {
			p.retryNumber++
			p.others = nil
			waiting = append(waiting, other)
		}
	}

	l.attempts.Unlock()
	for _, other := range waiting {
		l.Enqueue(other)
	}
}

// packageName returns the name of the package that a Package installs; empty before that.
func packageName(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; resolved != nil {
		return resolved.PackageName
	}
	return ""
}

// sameTarget reports whether the objects of two Packages are in one cluster, as far as their
// kubeconfigs are the same.
func sameTarget(a, b corev1alpha1.GenericPackage) bool {
	return targets.RefOf(a.GetNamespace(), a.PackageSpec().TargetRef) == targets.RefOf(b.GetNamespace(), b.PackageSpec().TargetRef)
}
