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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// patience is how long a test waits for what has to happen.
const patience = 30 * time.Second

// namespace makes a namespace named after the test.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-", " ", "-").Replace(t.Name()))
	env.Namespace(t, name)
	return name
}

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

// edit changes an object as a user does.
func edit[T client.Object](t *testing.T, obj T, change func(T)) T {
	t.Helper()
	must(t, tryEdit(t, obj, change))
	return obj
}

func tryEdit[T client.Object](t *testing.T, obj T, change func(T)) error {
	t.Helper()
	must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	return env.Client.Patch(t.Context(), obj, client.MergeFrom(before))
}

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("%T %s %s", obj, obj.GetName(), what), func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return check(obj)
	})
	return obj
}

// awaitVersion waits until a Package is available in a version.
func awaitVersion(t *testing.T, ns, name, version string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns, name), "has version "+version, func(pkg *corev1alpha1.Package) error {
		if r := pkg.Status.Resolved; r == nil || r.Version != version {
			return fmt.Errorf("resolved %+v, conditions %+v", r, pkg.Status.Conditions)
		}
		return says(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

// awaitRefusal waits until the dependencies of a Package are not ready for a reason.
func awaitRefusal(t *testing.T, ns, name, reason string, texts ...string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns, name), "is refused", func(pkg *corev1alpha1.Package) error {
		return says(pkg, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, reason, texts...)
	})
}

// says checks a condition of the present generation.
func says(pkg *corev1alpha1.Package, typ string, status metav1.ConditionStatus, reason string, texts ...string) error {
	c := meta.FindStatusCondition(pkg.Status.Conditions, typ)
	if c == nil || c.Status != status || reason != "" && c.Reason != reason || c.ObservedGeneration != pkg.Generation {
		return fmt.Errorf("generation %d has no %s=%s/%s; the conditions are %+v", pkg.Generation, typ, status, reason, pkg.Status.Conditions)
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s says %q, which lacks %q", typ, c.Message, text)
		}
	}
	return nil
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

// journal reads what the manager asked of the API server.
type journal struct {
	audit *sandbox.Audit
	from  sandbox.Position
}

func begin(t *testing.T) *journal {
	t.Helper()
	audit, err := env.Audit()
	must(t, err)
	from, err := audit.Mark(t.Context())
	must(t, err)
	return &journal{audit, from}
}

// rest waits until the manager has let the namespaces be, and returns its requests there since begin, watches apart.
func (j *journal) rest(t *testing.T, namespaces ...string) []sandbox.Entry {
	t.Helper()
	filters := []sandbox.Filter{
		sandbox.ByUser(harness.ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")),
		func(e sandbox.Entry) bool { return slices.Contains(namespaces, e.Object.Namespace) },
	}
	_, err := j.audit.Settled(t.Context(), j.from, 2*time.Second, filters...)
	must(t, err)
	entries, err := j.audit.Since(t.Context(), j.from, filters...)
	must(t, err)
	return entries
}

// silent fails the test where the manager has sent requests about the namespaces.
func (j *journal) silent(t *testing.T, namespaces ...string) {
	t.Helper()
	if entries := j.rest(t, namespaces...); len(entries) > 0 {
		t.Errorf("at rest:%s", lines(entries))
	}
}

// settle waits until the manager has said all that it has to say of what was done in a namespace.
func settle(t *testing.T, ns string) {
	t.Helper()
	begin(t).rest(t, ns)
}

// tally counts requests by "verb resource/subresource".
func tally(entries []sandbox.Entry) map[string]int {
	counts := map[string]int{}
	for _, e := range entries {
		counts[strings.TrimSuffix(e.Verb+" "+e.Object.Resource+"/"+e.Object.Subresource, "/")]++
	}
	return counts
}

// lines shows requests in a failure.
func lines(entries []sandbox.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "\n  %s %s (%d)", e.Verb, e.RequestURI, e.Code)
	}
	return b.String()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
