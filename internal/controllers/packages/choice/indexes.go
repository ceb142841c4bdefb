package choice

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
)

// Indexes of the caches by the name of a package, and by an API.
const (
	followerIndex  = "spec.packageRef"
	availableIndex = "spec.packageName"
	providedIndex  = "spec.versions.provides"
)

// Index is an index of a cache.
type Index struct {
	Of     client.Object
	Field  string
	Values client.IndexerFunc
}

// Indexes are the indexes of Packages by the package and by the API that they follow, and of
// AvailablePackages by their packages and APIs.
func Indexes() (all []Index) {
	for _, scope := range corev1alpha1.Scopes() {
		all = append(all, Index{scope.NewPackage(), followerIndex, followed}, Index{scope.NewAvailablePackage(), availableIndex, offeredName},
			Index{scope.NewAvailablePackage(), providedIndex, provided})
	}
	return all
}

// followed is the index of packages by the names and APIs that their packageRef can lead to.
func followed(obj client.Object) []string {
	pkg, ok := obj.(corev1alpha1.GenericPackage)
	if !ok || pkg.PackageSpec().PackageRef == nil {
		return nil
	}
	var values []string
	if name := offers.NameOf(pkg); name != "" {
		values = append(values, name)
	}
	if api := pkg.PackageSpec().PackageRef.API; api != nil {
		values = append(values, corev1alpha1.ProvidedAPI(*api).String())
	}
	return values
}

// offeredName is the index of offers by package.
func offeredName(obj client.Object) []string {
	if available, ok := obj.(corev1alpha1.GenericAvailablePackage); ok {
		return []string{available.AvailableSpec().PackageName}
	}
	return nil
}

// provided is the index of offers by the APIs that they provide.
func provided(obj client.Object) []string {
	if available, ok := obj.(corev1alpha1.GenericAvailablePackage); ok {
		return slices.Collect(maps.Keys(providersIn(available.AvailableSpec())))
	}
	return nil
}

// providersIn returns by the APIs that versions of a package provide who offers these, and to whom.
func providersIn(spec *corev1alpha1.AvailablePackageSpec) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	last := ""
	for i := range spec.Versions {
		v := &spec.Versions[i]
		from := fmt.Sprint(v.Repository, v.Scopes, v.Retracted != "")
		if i > 0 && from == last && slices.Equal(v.Provides, spec.Versions[i-1].Provides) {
			continue // most versions bring the same APIs
		}
		for _, api := range v.Provides {
			if found[api.String()] == nil {
				found[api.String()] = map[string]bool{}
			}
			found[api.String()][from] = true
		}
		last = from
	}

	return found
}
