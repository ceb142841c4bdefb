package cli

import (
	"context"
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// checkScope returns an error that names the right flag if a package does not allow a
// scope. Other problems of the manifest are ignored.
func checkScope(source string, files loader.Files, component string, scope corev1alpha1.Scope) error {
	parts := loader.Parts(files)
	i := slices.IndexFunc(parts, func(p loader.Part) bool { return p.Component == component })
	if i < 0 {
		return nil
	}
	result, _ := manifest.Read(parts[i].Files, component)
	if result == nil {
		return nil
	}
	namespaced := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeNamespaced)
	cluster := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeCluster)
	switch {
	case scope == corev1alpha1.ScopeNamespaced && cluster && !namespaced:
		return fmt.Errorf("%s can be installed as a ClusterPackage only: add --cluster", source)
	case scope == corev1alpha1.ScopeCluster && namespaced && !cluster:
		return fmt.Errorf("%s can be installed as a Package only, in a namespace: leave out --cluster", source)
	}
	return nil
}

// checkImage checks the scope of an image before the package is created. The manager
// checks one that cannot be pulled from here.
func (c *installCommand) checkImage(ctx context.Context, want wantedPackage) error {
	ctx, cancel := context.WithTimeout(ctx, limits.ScopeCheck)
	defer cancel()
	files, err := c.registry.pull(ctx, want.image)
	if err != nil {
		return nil
	}
	return checkScope(want.image, files, want.component, want.name.Scope)
}
