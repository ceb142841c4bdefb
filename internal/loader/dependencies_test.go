package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

const requiring = plain + `  packageName: shop.example.com
  dependencies:
  - {name: db, package: {name: db.shared.example.com, version: '>=1, <3', prereleases: {identifiers: [rc]}}}
  - {name: built, image: {name: base, package: base.repo, range: '>=1'}}
  - {name: certs, optional: true, api: {apiVersion: cert-manager.io/v1, kind: Certificate, fieldPaths: [spec.dnsNames]}}
  - {name: old-db, package: {name: db.shared.example.com, version: 1.x}}
`

func definitionText(kind, versions string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + kind +
		"s.example.com\n  annotations: {package-operator.run/phase: first}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: " + kind +
		", plural: " + kind + "s}\n  versions: [" + versions + "]\n"
}

// Dependents get the name of a package, its requirements and the APIs it brings.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", requiring+"  provides: [{apiVersion: metrics.example.org/v1, kind: Metric}, {apiVersion: example.com/v1, kind: Shop}]\n  constraints: [{uniqueInScope: {}}]\n",
		"manifest.lock.yaml", "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec:\n  dependencies: [{name: base, image: example.com/base, digest: 'sha256:"+
			strings.Repeat("b", 64)+"', version: v1}]\n",
		"crd.yaml", definitionText("Shop", "{name: v1, served: true}, {name: v1alpha1, served: false}, {name: v2, served: true}")+"---\n"+definitionText("Order", "{name: v1, served: true}, {name: 'a b', served: true}"))
	p, err := Load(context.Background(), files, namespaced(cluster))
	require.NoError(t, err)
	type declared struct {
		Name         string
		Dependencies []corev1alpha1.Dependency
		Provides     []corev1alpha1.ProvidedAPI
		Unique       corev1alpha1.UniqueScope
	}

	rc := &corev1alpha1.Prereleases{Identifiers: []string{"rc"}}
	want := declared{
		"shop.example.com",
		[]corev1alpha1.Dependency{
			{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.shared.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: ">=1, <3", Prereleases: rc}}},
			{Name: "certs", Optional: true, API: &corev1alpha1.DependencyAPI{APIVersion: "cert-manager.io/v1", Kind: "Certificate", FieldPaths: []string{"spec.dnsNames"}}},
			{Name: "old-db", Package: &corev1alpha1.DependencyPackage{Name: "db.shared.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: "1.x"}}},
		},
		[]corev1alpha1.ProvidedAPI{
			{APIVersion: "example.com/v1", Kind: "Order"}, {APIVersion: "example.com/v1", Kind: "Shop"}, {APIVersion: "example.com/v2", Kind: "Shop"},
			{APIVersion: "metrics.example.org/v1", Kind: "Metric"},
		},
		corev1alpha1.UniqueScopeCluster,
	}

	require.Equal(t, want, declared{p.CatalogName, p.Dependencies, p.Provides, p.UniqueInScope})
	for constraints, want := range map[string]corev1alpha1.UniqueScope{
		"{platform: [Kubernetes]}": "", "{uniqueInScope: {}}": corev1alpha1.UniqueScopeNamespace,
		"{uniqueInScope: {scope: Cluster}}, {uniqueInScope: {}}": corev1alpha1.UniqueScopeCluster,
	} {
		p, err := Load(context.Background(), pkg("manifest.yaml", plain+"  constraints: ["+constraints+"]\n"), namespaced())
		if err != nil || p.UniqueInScope != want || p.CatalogName != "shop" {
			t.Errorf("%s: %v, %+v", constraints, err, p)
		}
	}
}

// A package can consist only of its dependencies.
func TestBundleOfDependencies(t *testing.T) {
	t.Parallel()
	bundle := strings.Replace(plain, "  phases: [{name: first}, {name: second}]\n", "", 1)
	p, err := Load(context.Background(), pkg("manifest.yaml", stated(bundle+"  dependencies: [{name: db, package: {name: db.example.com}}]\n")), namespaced())
	if err != nil || len(p.Dependencies) != 1 || len(p.Template().Phases) != 0 {
		t.Errorf("%v, %+v", err, p)
	}
	if _, err := Validate(context.Background(), pkg("manifest.yaml", bundle+"  dependencies: [{name: db, api: {apiVersion: v1, kind: X}}]\n")); err != nil {
		t.Error(err)
	}

	for _, dependencies := range []string{"", "  dependencies: [{image: {name: a, package: b.c, range: '>1'}}]\n"} {
		require.Contains(t, lines(t, pkg("manifest.yaml", bundle+dependencies), namespaced()), "spec.phases: Required value. List at least one phase.", dependencies)
	}
}

func TestDependencyProblems(t *testing.T) {
	t.Parallel()
	list := func(entries ...string) string { return "  dependencies: [" + strings.Join(entries, ", ") + "]\n" }
	onPackage := func(more string) string { return list("{name: db, package: {name: db.example.com, " + more + "}}") }
	onAPI := func(paths string) string {
		return list("{name: c, api: {apiVersion: example.com/v1, kind: Shop, fieldPaths: [" + paths + "]}}")
	}

	for _, test := range []struct{ reason, spec, want string }{
		{"two forms", list("{name: db, package: {name: db.example.com}, api: {apiVersion: v1, kind: X}}"), "spec.dependencies[0]: 2 of image, package and api are set; exactly one is needed"},
		{"no form", "  version: 1.0.0\n" + list("{name: db}"), "spec.dependencies[0]: 0 of image, package and api are set"},
		{"no name", list("{package: {name: db.example.com}}"), "spec.dependencies[0].name: Required value"},
		{"invalid name of a dependency", list("{name: my.db, package: {name: db.example.com}}"), `spec.dependencies[0].name: "my.db" is not a valid dependency name: `},
		{"long name", list("{name: " + strings.Repeat("a", 64) + ", package: {name: db.example.com}}"), "is not a valid dependency name: must be no more than 63"},
		{"a name twice", list("{name: db, package: {name: a.example.com}}", "{name: db, api: {apiVersion: v1, kind: X}}"), `spec.dependencies[1].name: Duplicate value: "db". Choose another name.`},
		{"no package", list("{name: db, package: {version: '1'}}"), "spec.dependencies[0].package.name: Required value"},
		{"name of no package", list("{name: db, package: {name: DB}}"), `spec.dependencies[0].package.name: "DB" is not a valid package name`},
		{"name of a package that no catalogue has", list("{name: db, package: {name: " + strings.Repeat("a.", 121) + "b}}"), "the name has 243 bytes; the limit is 240"},
		{"itself", "  packageName: shop.example.com\n" + list("{name: me, package: {name: shop.example.com}}"), "spec.dependencies[0].package.name: the package cannot depend on itself. Remove it."},
		{"itself by its short name", list("{name: me, package: {name: shop}}"), "the package cannot depend on itself"},
		{"version", onPackage("version: abc"), `spec.dependencies[0].package.version: "abc" is not a range of versions. Write it as ">=1.29, <2".`},
		{"long version", onPackage("version: '" + strings.Repeat(" ", limits.TemplatePatternBytes) + "1'"), "spec.dependencies[0].package.version: 4097 bytes; the limit is 4096"},
		{"alternatives", onPackage("version: '" + strings.Repeat("1||", 32) + "1'"), `the range has 33 alternatives between "||"; the limit is 32`},
		{"comparisons", onPackage("version: '" + strings.Repeat(">1,", 64) + ">1'"), "the range has 65 comparisons; the limit is 64"},
		{"prerelease", onPackage("prereleases: {identifiers: [r.c]}"), `identifiers[0]: "r.c" is not a prerelease identifier`},
		{"prereleases", onPackage("prereleases: {identifiers: [" + strings.Repeat("a,", 33) + "]}"), "33 identifiers; the limit is 32"},
		{"unknown field", "  version: 1.0.0\n" + list("{name: db, optional: true, packages: {}}"), `spec.dependencies[0].packages: unknown field. Did you mean "package"?`},
		{"apiVersion", list("{name: c, api: {apiVersion: a b/v1, kind: X}}"), `spec.dependencies[0].api.apiVersion: "a b/v1" is not a valid apiVersion. Write it as v1 or group/v1.`},
		{"kind", list("{name: c, api: {apiVersion: v1, kind: a-}}"), `spec.dependencies[0].api.kind: "a-" is not a valid kind`},
		{"path", onAPI("spec.a, .spec"), `spec.dependencies[0].api.fieldPaths[1]: ".spec" is not a field path`},
		{"path through a list", onAPI("'spec.a[*]'"), `"spec.a[*]" is not a field path. Write it as spec.privateKey.rotationPolicy, also through lists.`},
		{"paths", onAPI(strings.Repeat("a,", 51)), "51 paths; the limit is 50"},
		{"an API that the manifest provides", "  provides: [{apiVersion: example.com/v1, kind: Shop}]\n" + onAPI(""), "spec.dependencies[0].api: the package brings example.com/v1 Shop itself. Remove it."},
		{"number", list(strings.Repeat("{name: d, package: {name: a.b.c}},", 51)), "spec.dependencies: 51 dependencies on packages and APIs; the limit is 50"},
		{"size", list(strings.Repeat("{name: d, package: {name: a.b.c, version: '>1"+strings.Repeat(" ", 4000)+"'}},", 4)), "the dependencies on packages and APIs have 16"},
		{"provides, apiVersion", "  provides: [{apiVersion: a_b/v1, kind: X}]\n", `spec.provides[0].apiVersion: "a_b/v1" is not a valid apiVersion`},
	} {
		require.Contains(t, lines(t, pkg("manifest.yaml", plain+test.spec), namespaced()), test.want, test.reason)
	}
}

// The APIs that a manifest provides are compared with the objects of its package.
func TestProvides(t *testing.T) {
	t.Parallel()
	const service = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata:\n  name: v1.metrics.example.com\n  annotations: {package-operator.run/phase: first}\n" +
		"spec: {group: metrics.example.com, version: v1, service: {name: m, namespace: m}}\n"
	provides := func(entries string) string { return "  provides: [" + entries + "]\n" }
	for _, test := range []struct{ reason, spec, problem, warning string }{
		{"served", provides("{apiVersion: example.com/v1, kind: Shop}"), "", ""},
		{"not served", provides("{apiVersion: example.com/v1alpha1, kind: Shop}"), "spec.provides[0].apiVersion: the CustomResourceDefinition of Shop.example.com in the package serves v1, not v1alpha1. Remove the entry, or serve the version.", ""},
		{"another kind of the group", provides("{apiVersion: example.com/v1, kind: Shpo}"), "spec.provides[0].kind: the package brings CustomResourceDefinitions of example.com, but none of Shpo.", ""},
		{"aggregated", provides("{apiVersion: metrics.example.com/v1, kind: Metric}"), "", ""},
		{"from nowhere", provides("{apiVersion: other.example.com/v1, kind: X}"), "", "no CustomResourceDefinition or APIService in the package brings other.example.com/v1 X"},
		{"an API of its own is required", "  dependencies: [{name: me, api: {apiVersion: example.com/v1, kind: Shop}}]\n", "spec.dependencies[0].api: the package brings example.com/v1 Shop itself. Remove it.", ""},
	} {
		files := pkg("manifest.yaml", plain+test.spec, "crd.yaml", definitionText("Shop", "{name: v1, served: true}, {name: v1alpha1, served: false}"), "service.yaml", service)
		p, err := Load(context.Background(), files, namespaced(cluster))
		if (err == nil) != (test.problem == "") || !strings.Contains(fmt.Sprint(err), test.problem) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if err == nil && (len(p.Warnings) == 0) != (test.warning == "") || err == nil && !strings.Contains(p.Warnings.Error(), test.warning) {
			t.Errorf("%s: %v", test.reason, p.Warnings)
		}
		if p, err := Load(context.Background(), files, namespaced(cluster, inCluster("v1.36.3", ""))); err == nil && len(p.Warnings) > 0 {
			t.Errorf("%s, in a cluster: %v", test.reason, p.Warnings)
		}
	}
}

func TestManyProvidedAPIs(t *testing.T) {
	t.Parallel()
	var versions []string
	for v := range 10 {
		versions = append(versions, fmt.Sprintf("{name: v%d, served: true}", v+1))
	}

	files := pkg("manifest.yaml", plain)
	for i := range limits.ProvidedAPIs/10 + 1 {
		files[fmt.Sprintf("%d.yaml", i)] = []byte(definitionText(fmt.Sprintf("kind%d", i), strings.Join(versions, ", ")))
	}

	p, err := Load(context.Background(), files, namespaced(cluster))
	if err != nil || len(p.Provides) != limits.ProvidedAPIs || !strings.Contains(p.Warnings.Error(), "the package brings 2010 APIs; the first 2000 of them are found by dependencies. Split the package.") {
		t.Errorf("%v: %d APIs, %v", err, len(p.Provides), p.Warnings)
	}

	announced := p.Announced()
	text, err := json.Marshal(announced)
	if err != nil || len(text) > announcedBytes+1 || len(text) < announcedBytes/2 || !slices.Equal(announced, p.Provides[:len(announced)]) {
		t.Errorf("%d APIs of %d bytes are announced", len(announced), len(text))
	}
}
