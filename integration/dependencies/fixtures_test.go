package dependencies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// patience is how long a test waits for what has to happen.
var patience = harness.Patience

// release is one version of a package: one ConfigMap of the name of its Package, which says which version it is.
type release struct {
	version string
	needs   []corev1alpha1.Dependency
	unique  corev1alpha1.UniqueScope
	// gated keeps the package from being available until its ConfigMap has the annotation ready: true.
	gated bool
	// files are more files.
	files    map[string]string
	provides []corev1alpha1.ProvidedAPI
}

func on(dependency, name, constraint string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: dependency, Package: &corev1alpha1.DependencyPackage{
		Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: constraint},
	}}
}

func onAPI(dependency, apiVersion, kind string, paths ...string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: dependency, API: &corev1alpha1.DependencyAPI{APIVersion: apiVersion, Kind: kind, FieldPaths: paths}}
}

func optional(d corev1alpha1.Dependency) corev1alpha1.Dependency {
	d.Optional = true
	return d
}

// of returns the release of a version with dependencies.
func of(version string, needs ...corev1alpha1.Dependency) release {
	return release{version: version, needs: needs}
}

// available returns what a repository offers of the release.
func (r release) available(t *testing.T, name string) corev1alpha1.AvailableVersion {
	t.Helper()
	encoded := func(v any) string {
		text, err := json.Marshal(v)
		must(t, err)
		return string(text)
	}
	manifest := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: " + name + "}\nspec:\n" +
		"  scopes: [Namespaced, Cluster]\n  phases: [{name: first}]\n  version: " + r.version + "\n  dependencies: " + encoded(r.needs) + "\n"
	if r.unique != "" {
		manifest += "  constraints: [{uniqueInScope: {scope: " + string(r.unique) + "}}]\n"
	}
	probes := []any{}
	if r.gated {
		probes = append(probes, map[string]any{"fieldsEqual": map[string]any{"fieldA": ".data.wanted", "fieldB": ".metadata.annotations.ready"}})
	}
	manifest += "  availabilityProbes: " + encoded([]any{map[string]any{
		"selector": map[string]any{"kind": map[string]any{"group": "", "kind": "ConfigMap"}}, "probes": probes,
	}}) + "\n"
	if len(probes) == 0 {
		manifest = manifest[:strings.Index(manifest, "  availabilityProbes")] + "  availabilityProbes: []\n"
	}
	files := map[string]string{
		"manifest.yaml": manifest,
		"object.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{.package.metadata.name}}\n  namespace: {{.package.metadata.namespace | default \"default\"}}\n" +
			"  annotations: {package-operator.run/phase: first}\ndata: {version: \"" + r.version + "\", wanted: \"true\"}\n",
	}
	maps.Copy(files, r.files)
	return corev1alpha1.AvailableVersion{
		Version: r.version, Repository: "stable", Files: files, Dependencies: r.needs, UniqueInScope: r.unique, Provides: r.provides,
	}
}

// repository creates a repository that does not fetch.
func repository(t *testing.T, ns string) {
	t.Helper()
	repo := corev1alpha1.ScopeOf(ns).NewPackageRepository()
	repo.SetNamespace(ns)
	repo.SetName("stable")
	repo.RepositorySpec().Paused = true
	repo.RepositorySpec().Source.Inline = &corev1alpha1.RepositoryInlineSource{}
	if err := env.Client.Create(t.Context(), repo); !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
}

// offer replaces the versions of a package that a namespace has.
func offer(t *testing.T, ns, name string, releases ...release) {
	t.Helper()
	repository(t, ns)
	available := &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(available), available)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	available.Spec = corev1alpha1.AvailablePackageSpec{PackageName: name}
	for _, r := range releases {
		available.Spec.Versions = append(available.Spec.Versions, r.available(t, name))
	}
	if err == nil {
		must(t, env.Client.Update(t.Context(), available))
		return
	}
	env.Create(t, available)
}

// offerCluster has the repository of the cluster offer versions of a package.
func offerCluster(t *testing.T, name string, releases ...release) {
	t.Helper()
	repository(t, "")
	available := &corev1alpha1.ClusterAvailablePackage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	available.Spec.PackageName = name
	for _, r := range releases {
		available.Spec.Versions = append(available.Spec.Versions, r.available(t, name))
	}
	env.Create(t, available)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), available) })
}

// wish returns a Package by constraint.
func wish(ns, name, pkg, constraint string, changes ...func(*corev1alpha1.PackageSpec)) *corev1alpha1.Package {
	p := harness.Package(ns, name, "")
	p.Spec.PackageRef = &corev1alpha1.PackageReference{Name: pkg, VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	for _, change := range changes {
		change(&p.Spec)
	}
	return p
}

func named(ns, name string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// awaitVersion waits until a Package is available in a version.
func awaitVersion(t *testing.T, ns, name, version string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns, name), "has version "+version, func(pkg *corev1alpha1.Package) error {
		if r := pkg.Status.Resolved; r == nil || r.Version != version {
			return fmt.Errorf("resolved %+v, conditions %+v", r, pkg.Status.Conditions)
		}
		return harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

// awaitRefusal waits until the dependencies of a Package are not ready for a reason.
func awaitRefusal(t *testing.T, ns, name, reason string, texts ...string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns, name), "is refused", func(pkg *corev1alpha1.Package) error {
		return harness.HasCondition(pkg, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, reason, texts...)
	})
}

// dependency returns the state of a dependency as "reason version kind/name".
func dependency(pkg *corev1alpha1.Package, name string) string {
	for _, d := range pkg.Status.Dependencies {
		if d.Name != name {
			continue
		}
		text := ""
		if c := meta.FindStatusCondition(d.Conditions, corev1alpha1.ConditionSatisfied); c != nil {
			text = c.Reason
		}
		if d.Version != "" {
			text += " " + d.Version
		}
		if d.PackageRef != nil {
			text += " " + d.PackageRef.Kind + "/" + d.PackageRef.Name
		}
		return text
	}
	return "none"
}

// packages returns the names of the Packages of a namespace with their versions, sorted.
func packages(t *testing.T, ns string) []string {
	t.Helper()
	list := &corev1alpha1.PackageList{}
	must(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	names := []string{}
	for _, pkg := range list.Items {
		version := ""
		if pkg.Status.Resolved != nil {
			version = pkg.Status.Resolved.Version
		}
		names = append(names, pkg.Name+"="+version)
	}
	slices.Sort(names)
	return names
}

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	return harness.Await(t, env, patience, obj, what, check)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
