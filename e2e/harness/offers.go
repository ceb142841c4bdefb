package harness

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Release is one version of a package that is offered without a registry. It contains one
// ConfigMap, which has the name of the Package and contains the version.
type Release struct {
	Version string
	Needs   []corev1alpha1.Dependency
	Unique  corev1alpha1.UniqueScope
	// Gated keeps the package from being available until its ConfigMap has the annotation ready:
	// true.
	Gated bool
	// Files are more files.
	Files    Files
	Provides []corev1alpha1.ProvidedAPI
	// Manifest is the name in the manifest; the default is the name of the package.
	Manifest string
}

// On returns a dependency on a package.
func On(dependency, name, constraint string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: dependency, Package: &corev1alpha1.DependencyPackage{
		Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: constraint},
	}}
}

// OnAPI returns a dependency on an API.
func OnAPI(dependency, apiVersion, kind string, paths ...string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: dependency, API: &corev1alpha1.DependencyAPI{APIVersion: apiVersion, Kind: kind, FieldPaths: paths}}
}

// available returns the release as a repository offers it.
func (r Release) available(tb testing.TB, name string) corev1alpha1.AvailableVersion {
	tb.Helper()
	encoded := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(tb, err)
		return string(text)
	}
	if r.Manifest != "" {
		name = r.Manifest
	}
	manifest := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: " + name + "}\nspec:\n" +
		"  scopes: [Namespaced, Cluster]\n  phases: [{name: first}]\n  version: " + r.Version + "\n  dependencies: " + encoded(r.Needs) + "\n"
	if r.Unique != "" {
		manifest += "  constraints: [{uniqueInScope: {scope: " + string(r.Unique) + "}}]\n"
	}
	probes := []any{}
	if r.Gated {
		probes = append(probes, map[string]any{
			"selector": map[string]any{"kind": map[string]any{"group": "", "kind": "ConfigMap"}},
			"probes":   []any{map[string]any{"fieldsEqual": map[string]any{"fieldA": ".data.wanted", "fieldB": ".metadata.annotations.ready"}}},
		})
	}
	manifest += "  availabilityProbes: " + encoded(probes) + "\n"
	files := Files{
		"manifest.yaml": manifest,
		"object.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{.package.metadata.name}}\n  namespace: {{.package.metadata.namespace | default \"default\"}}\n" +
			"  annotations: {package-operator.run/phase: first}\ndata: {version: \"" + r.Version + "\", wanted: \"true\"}\n",
	}
	maps.Copy(files, r.Files)
	return corev1alpha1.AvailableVersion{
		Version: r.Version, Repository: "stable", Files: files, Dependencies: r.Needs, UniqueInScope: r.Unique, Provides: r.Provides,
	}
}

// Offer makes the repository "stable" offer exactly these versions of a package. The
// repository is in a namespace, or belongs to the cluster if that is empty. It is paused, so
// it does not fetch. Offers in the cluster are deleted at the end of the test.
func (e *Env) Offer(tb testing.TB, namespace, name string, releases ...Release) {
	tb.Helper()
	scope := corev1alpha1.ScopeOf(namespace)
	repo := scope.NewPackageRepository()
	repo.SetNamespace(namespace)
	repo.SetName("stable")
	repo.RepositorySpec().Paused = true
	repo.RepositorySpec().Source.Inline = &corev1alpha1.RepositoryInlineSource{}
	if err := e.Client.Create(tb.Context(), repo); !apierrors.IsAlreadyExists(err) {
		require.NoError(tb, err)
	}
	available := scope.NewAvailablePackage()
	available.SetNamespace(namespace)
	available.SetName(name)
	err := e.Client.Get(tb.Context(), client.ObjectKeyFromObject(available), available)
	require.NoError(tb, client.IgnoreNotFound(err))
	spec := corev1alpha1.AvailablePackageSpec{PackageName: name}
	for _, r := range releases {
		spec.Versions = append(spec.Versions, r.available(tb, name))
	}
	*available.AvailableSpec() = spec
	if err == nil {
		require.NoError(tb, e.Client.Update(tb.Context(), available))
		return
	}
	e.Create(tb, available)
	if namespace == "" {
		tb.Cleanup(func() { _ = e.Client.Delete(context.Background(), available) })
	}
}
