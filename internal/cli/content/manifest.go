package content

import (
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// ManifestOf returns the manifest of a component; nil if it cannot be read, because the manager
// reports that error.
func ManifestOf(files loader.Files, component string) *manifest.Result {
	result, _, _ := ReadManifest(files, component)
	return result
}

// ReadManifest reads the manifest of a component. exists is false if the package does not have the
// component.
func ReadManifest(files loader.Files, component string) (result *manifest.Result, problems violation.Violations, exists bool) {
	parts := loader.Parts(files)
	i := slices.IndexFunc(parts, func(p loader.Part) bool { return p.Component == component })
	if i < 0 {
		return nil, nil, false
	}
	result, problems = manifest.Read(parts[i].Files, component)
	return result, problems, true
}

// CheckScope returns an error that names the right flag if a package does not allow a scope.
func CheckScope(source string, files loader.Files, component string, scope corev1alpha1.Scope) error {
	result := ManifestOf(files, component)
	if result == nil {
		return nil
	}
	namespaced := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeNamespaced)
	cluster := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeCluster)
	switch {
	case scope == corev1alpha1.ScopeNamespaced && cluster && !namespaced:
		return fmt.Errorf("%s can only be installed as a ClusterPackage: add --cluster", source)
	case scope == corev1alpha1.ScopeCluster && namespaced && !cluster:
		return fmt.Errorf("%s can only be installed as a Package, in a namespace: leave out --cluster", source)
	}

	return nil
}

// ComponentsOf names the components of a package.
func ComponentsOf(files loader.Files) []string {
	var names []string
	for _, part := range loader.Parts(files) {
		if part.Component != "" {
			names = append(names, part.Component)
		}
	}
	return names
}
