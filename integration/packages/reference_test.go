package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// catalogue contains the offers of a namespace's repository; an empty namespace means the
// cluster's.
type catalogue struct {
	namespace, repository string
}

// repository creates a repository that does not fetch.
func repository(t *testing.T, ns, name string, selector *metav1.LabelSelector) catalogue {
	t.Helper()
	repo := corev1alpha1.ScopeOf(ns).NewPackageRepository()
	repo.SetNamespace(ns)
	repo.SetName(name)
	spec := repo.RepositorySpec()
	spec.Paused, spec.NamespaceSelector = true, selector
	spec.Source.Inline = &corev1alpha1.RepositoryInlineSource{}
	env.Create(t, repo)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), repo) })
	return catalogue{ns, name}
}

// offers replaces the versions of a package.
func (c catalogue) offers(t *testing.T, name string, versions ...corev1alpha1.AvailableVersion) {
	t.Helper()
	available := corev1alpha1.ScopeOf(c.namespace).NewAvailablePackage()
	available.SetNamespace(c.namespace)
	available.SetName(name)
	for i := range versions {
		versions[i].Repository = c.repository
	}
	spec := corev1alpha1.AvailablePackageSpec{PackageName: name, Versions: versions}
	err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(available), available)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	*available.AvailableSpec() = spec
	if err == nil {
		require.NoError(t, env.Client.Update(t.Context(), available))
		return
	}
	env.Create(t, available)
	if c.namespace == "" {
		t.Cleanup(func() { _ = env.Client.Delete(context.Background(), available) })
	}
}

func version(v, image string) corev1alpha1.AvailableVersion {
	return corev1alpha1.AvailableVersion{Version: v, Image: image}
}

// following returns a Package of the name shop that follows a package.
func following(ns, name, constraint string) *corev1alpha1.Package {
	pkg := harness.Package(ns, "shop", "")
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	return pkg
}

// awaitVersion waits until a version is rolled out, and returns the Package.
func awaitVersion(t *testing.T, ns, want string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns), "has version "+want, func(pkg *corev1alpha1.Package) error {
		if r := pkg.Status.Resolved; r == nil || r.Version != want {
			return fmt.Errorf("resolved %+v, conditions %+v", r, pkg.Status.Conditions)
		}
		if err := harness.HasCondition(pkg, corev1alpha1.ConditionResolved, metav1.ConditionTrue, corev1alpha1.ReasonResolved); err != nil {
			return err
		}
		return harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

// awaitRefusal waits until a Package explains why no version is chosen.
func awaitRefusal(t *testing.T, ns, reason string, texts ...string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns), "is refused", func(pkg *corev1alpha1.Package) error {
		if err := harness.HasCondition(pkg, corev1alpha1.ConditionResolved, metav1.ConditionFalse, reason, texts...); err != nil {
			return err
		}
		if err := harness.HasCondition(pkg, corev1alpha1.ConditionStalled, metav1.ConditionTrue, reason); err != nil {
			return err
		}
		return harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionFalse, reason)
	})
}

// unmoved fails the test if the manager sends requests other than reads of the AvailablePackages
// that the test wrote.
func unmoved(t *testing.T, ns string, from *harness.Journal) {
	t.Helper()
	entries := slices.DeleteFunc(from.Rest(t, ns), func(e sandbox.Entry) bool { return e.Verb == "get" && e.Object.Resource == "availablepackages" })
	if len(entries) > 0 {
		t.Errorf("nothing moves:%s", harness.Lines(entries))
	}
}

func constrain(constraint string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) { pkg.Spec.PackageRef.Version = constraint }
}

// A Package with a constraint follows the highest matching version, and its status records the
// resolved one.
func TestReferenceFollowsVersions(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	one, two, three := push(t, 1, 1, "v1"), push(t, 1, 1, "v2"), push(t, 1, 1, "v3")
	repo := repository(t, ns, "stable", nil)
	repo.offers(t, "shop", version("1.0.0", one))
	env.Create(t, following(ns, "shop", "^1"))
	pkg := awaitVersion(t, ns, "1.0.0")
	r, last := pkg.Status.Resolved, pkg.Status.LastAttempted
	if r.PackageName != "shop" || r.Image != one || r.Repository != "PackageRepository/stable" || !strings.HasPrefix(r.Digest, "sha256:") {
		t.Errorf("resolved %+v", r)
	}
	if last == nil || *last != (corev1alpha1.AttemptedVersion{PackageName: "shop", Version: "1.0.0", Image: one}) {
		t.Errorf("last attempted %+v", last)
	}
	if image := deployment(t, ns).Annotations[corev1alpha1.PackageSourceImageAnnotation]; image != one {
		t.Errorf("the deployment is of %s", image)
	}
	env.Settle(t, ns)
	unmoved(t, ns, env.Journal(t))

	from := env.Journal(t)
	repo.offers(t, "shop", version("1.0.0", one), version("1.1.0", two))
	pkg = awaitVersion(t, ns, "1.1.0")
	if pkg.Status.Revision != 2 {
		t.Errorf("revision %d", pkg.Status.Revision)
	}
	order := []string{}
	for _, e := range from.Rest(t, ns) {
		if e.Object.Resource == "packages" && e.Object.Subresource == "status" || e.Object.Resource == "objectdeployments" && e.Verb == "patch" {
			order = append(order, e.Object.Resource)
		}
	}
	if slices.Index(order, "objectdeployments") < 1 {
		t.Errorf("the attempt is recorded before the deployment is changed: %v", order)
	}

	// A version that does not fit, or is a prerelease, changes nothing.
	env.Settle(t, ns)
	from = env.Journal(t)
	repo.offers(t, "shop", version("1.0.0", one), version("1.1.0", two), version("1.2.0-rc.1", three), version("2.0.0", three))
	unmoved(t, ns, from)
	harness.Edit(t, env, named(ns), func(pkg *corev1alpha1.Package) {
		pkg.Spec.PackageRef.Prereleases = &corev1alpha1.Prereleases{Identifiers: []string{"rc"}}
	})
	awaitVersion(t, ns, "1.2.0-rc.1")
	harness.Edit(t, env, named(ns), constrain(">=2"))
	awaitVersion(t, ns, "2.0.0")
}

// A Package that cannot be resolved has nothing installed, and is resolved once that is possible.
func TestReferenceRefusals(t *testing.T) {
	t.Parallel()
	ns, image := env.TestNamespace(t), push(t, 1, 1, "v1")
	repo := repository(t, ns, "stable", nil)
	env.Create(t, following(ns, "shop", "^1"))
	awaitRefusal(t, ns, corev1alpha1.ReasonUnknownPackage, "shop")

	future := version("1.1.0", image)
	future.Constraints = []corev1alpha1.AvailableConstraint{{Platform: "Kubernetes", Range: ">=9"}}
	other := version("1.2.0", image)
	other.NotCarriedOver = []string{"template[0].ytt"}
	versions := []corev1alpha1.AvailableVersion{future, other, version("2.0.0", image)}
	for _, prerelease := range []string{"2.1.0-alpha.9", "2.1.0-beta.1", "2.1.0-rc.1", "2.1.0-nightly"} {
		versions = append(versions, version(prerelease, image))
	}
	repo.offers(t, "shop", versions...)
	awaitRefusal(t, ns, corev1alpha1.ReasonNoMatchingVersion, "1.1.0", "1.2.0", "template[0].ytt")
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "shop"}, &corev1alpha1.ObjectDeployment{}); err == nil {
		t.Error("a deployment was made")
	}
	// An annotation disables constraints on the version of Kubernetes, although it is not part of
	// the spec.
	harness.Edit(t, env, named(ns), func(pkg *corev1alpha1.Package) {
		pkg.Annotations = map[string]string{"packaging.carvel.dev/ignore-kubernetes-version-selection": ""}
	})
	awaitVersion(t, ns, "1.1.0")

	harness.Edit(t, env, named(ns), constrain("about 1"))
	awaitRefusal(t, ns, corev1alpha1.ReasonVersionInvalid, "about 1")
	env.Settle(t, ns)
	unmoved(t, ns, env.Journal(t))
	harness.Edit(t, env, named(ns), constrain(""))
	awaitVersion(t, ns, "2.0.0")

	// Prereleases only match if the spec allows them: first two identifiers, and then any.
	prereleases := func(identifiers ...string) func(*corev1alpha1.Package) {
		return func(pkg *corev1alpha1.Package) {
			pkg.Spec.PackageRef.Prereleases = &corev1alpha1.Prereleases{Identifiers: identifiers}
		}
	}
	harness.Edit(t, env, named(ns), prereleases("alpha", "beta"))
	awaitVersion(t, ns, "2.1.0-beta.1")
	harness.Edit(t, env, named(ns), prereleases())
	awaitVersion(t, ns, "2.1.0-rc.1")

	// The other way of naming the content.
	harness.Edit(t, env, named(ns), func(pkg *corev1alpha1.Package) { pkg.Spec.PackageRef, pkg.Spec.Image = nil, image })
	await(t, named(ns), "is of an image", func(pkg *corev1alpha1.Package) error {
		if r := pkg.Status.Resolved; r.Repository != "" || r.Version != "" || r.Image != image {
			return fmt.Errorf("resolved %+v", r)
		}
		return lacks(pkg, corev1alpha1.ConditionResolved)
	})
}

// A namespace sees the cluster's repositories that select it; its own repositories take
// precedence. ClusterPackages only see the cluster's repositories.
func TestReferenceVisibility(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	one, two, three := push(t, 1, 1, "v1"), push(t, 1, 1, "v2"), push(t, 1, 1, "v3")
	all := repository(t, "", "all-"+ns, nil)
	chosen := repository(t, "", "chosen-"+ns, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}})
	name := "visible-" + ns
	first, second := version("1.0.0", one), version("2.0.0", two)
	all.offers(t, name, first)
	first.Repository, second.Repository = all.repository, chosen.repository
	available := &corev1alpha1.ClusterAvailablePackage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	harness.Edit(t, env, available, func(a *corev1alpha1.ClusterAvailablePackage) {
		a.Spec.Versions = []corev1alpha1.AvailableVersion{first, second}
	})
	env.Create(t, following(ns, name, ""))
	if r := awaitVersion(t, ns, "1.0.0").Status.Resolved; r.Repository != "ClusterPackageRepository/all-"+ns {
		t.Errorf("resolved %+v", r)
	}
	cluster := harness.ClusterPackage(ns, "")
	cluster.Spec.PackageRef = &corev1alpha1.PackageReference{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: ">=1"}}
	cluster.Spec.DefaultNamespace = ns
	cluster.Spec.CommonMetadata = nil
	env.Create(t, cluster)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), cluster) })
	await(t, cluster, "sees all", func(pkg *corev1alpha1.ClusterPackage) error {
		if r := pkg.Status.LastAttempted; r == nil || r.Version != "2.0.0" {
			return fmt.Errorf("last attempted %+v", r)
		}
		return nil
	})

	labelled := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: ns}}
	require.NoError(t, env.Client.Patch(t.Context(), labelled, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":"gold"}}}`))))
	awaitVersion(t, ns, "2.0.0")
	repo := &corev1alpha1.ClusterPackageRepository{ObjectMeta: metav1.ObjectMeta{Name: chosen.repository}}
	harness.Edit(t, env, repo, func(r *corev1alpha1.ClusterPackageRepository) { r.Spec.NamespaceSelector.MatchLabels["tier"] = "none" })
	awaitRefusal(t, ns, corev1alpha1.ReasonDowngradeRefused, "2.0.0")
	harness.Edit(t, env, repo, func(r *corev1alpha1.ClusterPackageRepository) { r.Spec.NamespaceSelector = nil })
	awaitVersion(t, ns, "2.0.0")

	own := repository(t, ns, "own", nil)
	own.offers(t, name, version("2.0.0", three))
	await(t, named(ns), "is of its own repository", func(pkg *corev1alpha1.Package) error {
		if r := pkg.Status.Resolved; r.Image != three || r.Repository != "PackageRepository/own" {
			return fmt.Errorf("resolved %+v", r)
		}
		return nil
	})
	require.NoError(t, env.Client.Delete(t.Context(), repo, client.Preconditions{UID: ptr.To(repo.UID)}))
}
