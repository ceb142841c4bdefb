package repository_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

type requirements struct {
	Dependencies []corev1alpha1.Dependency
	Provides     []corev1alpha1.ProvidedAPI
	Unique       corev1alpha1.UniqueScope
	Scopes       []corev1alpha1.Scope
}

// only is the single version that is offered, even after a merge.
func only(t *testing.T, text string) *corev1alpha1.AvailableVersion {
	t.Helper()
	content, err := repository.Read(map[string][]byte{"a.yaml": []byte(text)})
	if err != nil || len(content.Problems) > 0 {
		t.Fatalf("%v, %v", err, content)
	}
	available, _ := repository.Merge([]repository.Offer{{Repository: "a", Content: content}}, nil)
	if len(available) != 1 || len(available[0].Versions) != 1 {
		t.Fatalf("%+v", available)
	}
	return &available[0].Versions[0]
}

func requirementsOf(t *testing.T, text string) requirements {
	t.Helper()
	v := only(t, text)
	return requirements{v.Dependencies, v.Provides, v.UniqueInScope, v.Scopes}
}

var (
	onDB   = corev1alpha1.Dependency{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: ">=1"}}}
	onCert = corev1alpha1.Dependency{Name: "certs", API: &corev1alpha1.DependencyAPI{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}}
	shops  = []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}}
)

// An entry's dependencies, APIs and scopes are offered.
func TestRequirementsOfEntries(t *testing.T) {
	t.Parallel()
	optional := onCert
	optional.Optional = true
	for _, test := range []struct {
		reason, data string
		want         requirements
	}{
		{"nothing", "", requirements{}},
		{
			"dependencies and APIs",
			"dependencies: [{name: db, package: {name: db.example.com, version: '>=1'}}, {name: certs, optional: true, api: {apiVersion: cert-manager.io/v1, kind: Certificate}}], provides: [{apiVersion: example.com/v1, kind: Shop}],",
			requirements{Dependencies: []corev1alpha1.Dependency{onDB, optional}, Provides: shops},
		},
		{"one per namespace", "constraints: [{uniqueInScope: {}}],", requirements{Unique: corev1alpha1.UniqueScopeNamespace}},
		{"one per cluster", "constraints: [{uniqueInScope: {}}, {uniqueInScope: {scope: Cluster}}],", requirements{Unique: corev1alpha1.UniqueScopeCluster}},
		{"one ClusterPackage", "constraints: [{uniqueInScope: {}}], scopes: [Cluster],", requirements{Unique: corev1alpha1.UniqueScopeCluster, Scopes: []corev1alpha1.Scope{corev1alpha1.ScopeCluster}}},
		{"both scopes", "scopes: [Namespaced, Cluster],", requirements{}},
	} {
		require.Equal(t, test.want, requirementsOf(t, webEntry("versions", test.data+" versions")), test.reason)
	}
}

// Packages of kapp-controller have another form.
func TestRequirementsOfCarvel(t *testing.T) {
	t.Parallel()
	const dependencies = `  dependencies:
  - {name: db, packageRef: {refName: db.example.com, versionSelection: {constraints: '>=1'}}}
  - {name: old-db, packageRef: {refName: db.example.com, versionSelection: {constraints: 1.x, prereleases: {identifiers: [rc]}}}}
  - {name: certs, gvk: {apiVersion: cert-manager.io/v1, kind: Certificate}}
`

	old := corev1alpha1.Dependency{Name: "old-db", Package: &corev1alpha1.DependencyPackage{
		Name: "db.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: "1.x", Prereleases: &corev1alpha1.Prereleases{Identifiers: []string{"rc"}}},
	}}

	for _, test := range []struct {
		reason, spec string
		want         requirements
	}{
		{"nothing", "  installationType: noRestrictions\n  dependencies: []\n", requirements{}},
		{"dependencies, one package twice", dependencies, requirements{Dependencies: []corev1alpha1.Dependency{onDB, old, onCert}}},
		{"APIs", "  provides: [{apiVersion: example.com/v1, kind: Shop}]\n", requirements{Provides: shops}},
		{"one per cluster", "  installationType: onePerCluster\n", requirements{Unique: corev1alpha1.UniqueScopeCluster}},
		{"one per namespace", "  installationType: onePerNamespace\n", requirements{Unique: corev1alpha1.UniqueScopeNamespace}},
	} {
		require.Equal(t, test.want, requirementsOf(t, carvel("  version: 1.0.0\n", "  version: 1.0.0\n"+test.spec)), test.reason)
	}
}

// Manifests with a cluster-scoped object are offered only to the cluster.
func TestScopesOfCarvel(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]corev1alpha1.Scope{
		"apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition": {corev1alpha1.ScopeCluster}, "apiVersion: v1, kind: ConfigMap": nil,
	} {
		text := carvel("imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "inline: {paths: {a.yaml: '{"+kind+", metadata: {name: a}}'}}")
		require.Equal(t, requirements{Scopes: want}, requirementsOf(t, text), kind)
	}
}

// A Package without a template consists only of its dependencies, and can be installed.
func TestBundleOfCarvel(t *testing.T) {
	t.Parallel()
	text, _, _ := strings.Cut(carvel(), "  template:")
	v := only(t, text+"  installationType: onePerCluster\n  dependencies: [{name: db, packageRef: {refName: db.example.com, versionSelection: {constraints: '>=1'}}}]\n")
	files := loader.Files{}
	for path, content := range v.Files {
		files[path] = []byte(content)
	}

	opts := loader.Options{}
	opts.Package.Metadata.Name, opts.Package.Metadata.Namespace = "shop", "team"
	pkg, err := loader.Load(t.Context(), files, opts)
	require.NoError(t, err)
	if diff := cmp.Diff([]corev1alpha1.Dependency{onDB}, pkg.Dependencies); diff != "" || len(v.NotCarriedOver) > 0 || pkg.Name != "shop.example.com" ||
		len(pkg.Phases) > 0 || pkg.UniqueInScope != corev1alpha1.UniqueScopeCluster {
		t.Errorf("%+v, %+v: %s", v, pkg, diff)
	}
}
