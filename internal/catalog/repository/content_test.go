package repository_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

// filesIn returns the files of a folder by their paths below it.
func filesIn(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	files, root := map[string][]byte{}, os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(root, path)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}

	return files
}

// compare compares a value with a file of YAML.
func compare(t *testing.T, path string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	require.NoError(t, err)
	golden.Text(t, path, string(got))
}

// The documents of a repository in Carvel's format are offered, and parts that are not carried over
// are named.
func TestReadCarvel(t *testing.T) {
	t.Parallel()
	content, err := repository.Read(filesIn(t, "testdata/carvel"))
	require.NoError(t, err)
	compare(t, "testdata/carvel.yaml", content)
}

// Each step that is not carried over is named, and the version cannot be installed.
func TestStepsOfCarvel(t *testing.T) {
	t.Parallel()
	const fetch, kapp = "- imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "- kapp: {}"
	for _, test := range []struct {
		reason, old, new string
		want             []string
	}{
		{"a bundle alone", "", "", nil},
		{"a namespace, which is ignored", "metadata:\n", "metadata:\n  namespace: elsewhere\n", nil},
		{"no deploy step", "\n      deploy:\n      " + kapp, "", nil},
		{"kapp without anything", kapp, "- kapp:", nil},
		{"empty options", kapp, "- kapp: {delete: {}, rawOptions: [], intoNs: ''}", nil},
		{"an image", fetch, "- image: {url: registry.example.com/shop:1.0.0, subPath: ''}", nil},
		{"files", fetch, "- inline: {paths: {config/a.yaml: 'a: 1'}}", nil},
		{"no fetch", "\n      fetch:\n      " + fetch, "", []string{"template.spec.fetch"}},
		{"git", fetch, "- git: {url: a}", []string{"template.spec.fetch[0].git"}},
		{"http", fetch, "- http: {url: a}", []string{"template.spec.fetch[0].http"}},
		{"helmChart", fetch, "- helmChart: {name: a}", []string{"template.spec.fetch[0].helmChart"}},
		{"files of Secrets", fetch, "- inline: {pathsFrom: [{secretRef: {name: a}}]}", []string{"template.spec.fetch[0].inline"}},
		{"files of Secrets too", fetch, "- inline: {paths: {a.yaml: b}, pathsFrom: [{secretRef: {name: a}}]}", []string{"template.spec.fetch[0].inline.pathsFrom"}},
		{"a Secret", fetch, "- imgpkgBundle: {image: a/b, secretRef: {name: a}}", []string{"template.spec.fetch[0].imgpkgBundle.secretRef"}},
		{"a tag", fetch, "- image: {url: a/b, tagSelection: {semver: {}}}", []string{"template.spec.fetch[0].image.tagSelection"}},
		{"a folder", fetch, "- image: {url: a/b, subPath: c}", []string{"template.spec.fetch[0].image.subPath"}},
		{"a place", fetch, "- image: {url: a/b}\n        path: c", []string{"template.spec.fetch[0].path"}},
		{"two fetches", fetch, fetch + "\n      - git: {}", []string{"template.spec.fetch[0].imgpkgBundle", "template.spec.fetch[1].git"}},
		{"templates", "      deploy", "      template:\n      - ytt: {}\n      - kbld: {}\n      - sops: {}\n      - helmTemplate: {}\n      - cue: {}\n      - other: {}\n      deploy", []string{
			"template.spec.template[0].ytt", "template.spec.template[2].sops",
			"template.spec.template[3].helmTemplate", "template.spec.template[4].cue", "template.spec.template[5].other",
		}},
		{"kbld that resolves", "      deploy", "      template:\n      - kbld: {}\n      deploy", nil},
		{"kbld that applies the lock", "      deploy", "      template:\n      - kbld: {paths: ['-', .imgpkg/images.yml]}\n      deploy", nil},
		{"kbld of some files", "      deploy", "      template:\n      - kbld: {paths: [config]}\n      deploy", []string{"template.spec.template[0].kbld"}},
		{"kbld with options", "      deploy", "      template:\n      - kbld: {other: true}\n      deploy", []string{"template.spec.template[0].kbld"}},
		{"options", kapp, "- kapp: {intoNs: a, rawOptions: [b]}", []string{"template.spec.deploy[0].kapp.intoNs", "template.spec.deploy[0].kapp.rawOptions"}},
		{"two deploys", kapp, kapp + "\n      " + kapp, []string{"template.spec.deploy[1].kapp"}},
		{"another deploy", kapp, "- helm: {}", []string{"template.spec.deploy[0].helm"}},
		{"more than are kept", "      deploy", "      template:\n" + strings.Repeat("      - ytt: {}\n", 60) + "      deploy", append(ytts(50), "and 10 more")},
	} {
		content, err := repository.Read(map[string][]byte{"a.yaml": []byte(carvel(test.old, test.new))})
		if err != nil || len(content.Problems) > 0 {
			t.Errorf("%s: %v, %v", test.reason, err, content)
			continue
		}
		v := content.Packages[0].Versions[0]
		require.Equal(t, test.want, v.NotCarriedOver, test.reason)
		if installable := v.Image != "" || len(v.Files) > 0; installable == (len(test.want) > 0) {
			t.Errorf("%s: image %q, files %v", test.reason, v.Image, v.Files)
		}
	}
}

func ytts(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("template.spec.template[%d].ytt", i))
	}
	return out
}

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
