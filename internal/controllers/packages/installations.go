package packages

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// noteInstallation retries others where a Package became one of another package.
func (r *Reconciler) noteInstallation(st *state, pkg corev1alpha1.GenericPackage) {
	r.memory.Lock()
	before, now := st.recorded, packageName(pkg)
	st.recorded = now
	r.memory.Unlock()
	if before != "" && before != now {
		r.retryOthers(keyOf(pkg))
	}
}

// claim claims the name of a package, and returns its other installations in the namespace, or those of a ClusterPackage in the
// cluster, sorted. The loader decides on conflicts.
func (r *Reconciler) claim(ctx context.Context, st *state, own types.NamespacedName, name string) ([]types.NamespacedName, error) {
	others, all := map[types.NamespacedName]struct{}{}, map[types.NamespacedName]corev1alpha1.GenericPackage{}
	packages, err := listPackages(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	for _, pkg := range packages {
		all[keyOf(pkg)] = pkg
		if packageName(pkg) == name {
			others[keyOf(pkg)] = struct{}{}
		}
	}
	r.memory.Lock()
	defer r.memory.Unlock()
	for key, other := range r.memory.states {
		if other.claimed == name {
			others[key] = struct{}{}
		}
	}
	maps.DeleteFunc(others, func(key types.NamespacedName, _ struct{}) bool {
		return key == own || key.Namespace != own.Namespace || all[own] != nil && all[key] != nil && !sameTarget(all[own], all[key])
	})
	st.claimed, st.others = name, others
	return slices.SortedFunc(maps.Keys(others), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }), nil
}

// releaseClaim gives up the claim of a failed load, except where the Package is installed under that name: two that are
// refused for each other must not enqueue each other forever.
func (r *Reconciler) releaseClaim(st *state, own types.NamespacedName) {
	r.memory.Lock()
	claimed := st.claimed
	st.claimed = ""
	r.memory.Unlock()
	if claimed == "" {
		return
	}
	packages, _ := listPackages(context.Background(), r.Client) // without them others are retried
	if slices.ContainsFunc(packages, func(pkg corev1alpha1.GenericPackage) bool {
		return keyOf(pkg) == own && packageName(pkg) == claimed
	}) {
		return
	}
	r.retryOthers(own)
}

func (r *Reconciler) retryOthers(key types.NamespacedName) {
	var waiting []types.NamespacedName
	r.memory.Lock()
	for other, st := range r.memory.states {
		if _, ok := st.others[key]; ok {
			st.retryNumber++
			st.others = nil
			waiting = append(waiting, other)
		}
	}
	r.memory.Unlock()
	for _, other := range waiting {
		r.enqueue(other)
	}
}

// packageName returns the name of the package that a Package installs; empty before that.
func packageName(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; resolved != nil {
		return resolved.PackageName
	}
	return ""
}
