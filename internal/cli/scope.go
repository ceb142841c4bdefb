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

// wrongScope says by which flag a package can be installed that cannot be in a scope;
// nil where it can, or where its manifest has other problems.
func wrongScope(source string, files loader.Files, component string, scope corev1alpha1.Scope) error {
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

// checkScope looks into an image before anything is made of it. The manager says the
// same of one that cannot be pulled from here.
func (c *installCommand) checkScope(ctx context.Context, want wantedPackage) error {
	ctx, cancel := context.WithTimeout(ctx, limits.ScopeCheck)
	defer cancel()
	files, err := c.registry.pull(ctx, want.image)
	if err != nil {
		return nil
	}
	return wrongScope(want.image, files, want.component, want.name.Scope)
}
