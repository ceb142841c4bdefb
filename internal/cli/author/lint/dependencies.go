package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
)

// undeclaredAPI reports each API once. It skips packages with dependencies, because the APIs of
// those are not known here.
func undeclaredAPI(c *oneCase, r reporter) {
	dependencies := c.Package.Dependencies
	if slices.ContainsFunc(dependencies, func(d corev1alpha1.Dependency) bool { return d.Package != nil }) {
		return
	}
	openShift := slices.ContainsFunc(c.manifest.Spec.Constraints, func(constraint manifestsv1alpha1.PackageManifestConstraint) bool {
		return slices.Contains(constraint.Platform, manifestsv1alpha1.PlatformOpenShift)
	})
	known := slices.Clone(c.Package.Provides)
	for _, o := range c.objects {
		api := corev1alpha1.ProvidedAPI{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}
		_, builtIn := loader.BuiltInScope(o.kind)
		declared := slices.ContainsFunc(dependencies, func(d corev1alpha1.Dependency) bool {
			return d.API != nil && d.API.APIVersion == api.APIVersion && d.API.Kind == api.Kind
		})
		if builtIn || declared || openShift && strings.HasSuffix(o.kind.Group, ".openshift.io") || slices.Contains(known, api) {
			continue
		}

		known = append(known, api)
		r.at(o, "", fmt.Sprintf("Add {name: …, api: {apiVersion: %s, kind: %s}} to spec.dependencies.", api.APIVersion, api.Kind),
			"neither Kubernetes nor the package provides %s %s, and no dependency names it", api.APIVersion, api.Kind)
	}
}

// unboundedDependency reports dependencies without a version range.
func unboundedDependency(c *oneCase, r reporter) {
	for i, d := range c.manifest.Spec.Dependencies {
		if d.Package != nil && d.Package.Version == "" {
			r.manifest(fmt.Sprintf("spec.dependencies[%d].package.version", i), `Write the versions that it works with, such as ">=1.2, <2".`,
				"any version of %s is accepted, even a later major one", d.Package.Name)
		}
	}
}
