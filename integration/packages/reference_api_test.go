package packages_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// apiOf is an API of a group that no other test has.
func apiOf(ns string) corev1alpha1.ProvidedAPI {
	return corev1alpha1.ProvidedAPI{APIVersion: ns + ".example.com/v1", Kind: "Shop"}
}

// providing is a version that provides APIs.
func providing(v, image string, apis ...corev1alpha1.ProvidedAPI) corev1alpha1.AvailableVersion {
	of := version(v, image)
	of.Provides = apis
	return of
}

// wanting returns a Package of the name shop that names an API.
func wanting(ns string, api corev1alpha1.ProvidedAPI) *corev1alpha1.Package {
	pkg := harness.Package(ns, "shop", "")
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{API: (*corev1alpha1.APIReference)(&api)}
	return pkg
}

// awaitResolved waits until a package is chosen, and the condition has some texts.
func awaitResolved(t *testing.T, ns string, texts ...string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns), "is resolved", func(pkg *corev1alpha1.Package) error {
		return harness.HasCondition(pkg, corev1alpha1.ConditionResolved, metav1.ConditionTrue, corev1alpha1.ReasonResolved, texts...)
	})
}

func withdraw(t *testing.T, ns, name string) {
	t.Helper()
	require.NoError(t, env.Client.Delete(t.Context(), &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
}

// A Package that requires an API resolves to the only package that provides it, in a version that
// does. It keeps that package regardless of later offers.
func TestReferenceByAPI(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	one, two, three := push(t, 1, 1, "v1"), push(t, 1, 1, "v2"), push(t, 1, 1, "v3")
	api, repo := apiOf(ns), repository(t, ns, "stable", nil)
	env.Create(t, wanting(ns, api))
	awaitRefusal(t, ns, corev1alpha1.ReasonUnknownPackage, "no repository offers a package that provides "+api.String())

	repo.offers(t, "market", providing("1.0.0", one, api), version("2.0.0", two))
	pkg := awaitVersion(t, ns, "1.0.0")
	want := &corev1alpha1.AttemptedVersion{PackageName: "market", API: (*corev1alpha1.APIReference)(&api), Version: "1.0.0", Image: one}
	if diff := cmp.Diff(want, pkg.Status.LastAttempted); diff != "" || pkg.Status.Resolved.CatalogName != "market" {
		t.Errorf("%s %+v", diff, pkg.Status.Resolved)
	}
	awaitResolved(t, ns, "market, chosen for "+api.String(), "2.0.0 does not provide")

	// A higher version that provides it is followed; another package is not.
	repo.offers(t, "market", providing("1.0.0", one, api), version("2.0.0", two), providing("2.1.0", three, api))
	awaitVersion(t, ns, "2.1.0")
	repo.offers(t, "bazaar", providing("9.0.0", one, api))
	pkg = awaitResolved(t, ns, "market, chosen for", "bazaar is also offered with this API", "set packageRef.name")
	if r := pkg.Status.Resolved; r.Version != "2.1.0" || pkg.Status.Revision != 2 {
		t.Errorf("resolved %+v", r)
	}
	withdraw(t, ns, "market")
	pkg = awaitRefusal(t, ns, corev1alpha1.ReasonUnknownPackage, "market, chosen for", "bazaar")
	if r := pkg.Status.Resolved; r.CatalogName != "market" || r.Image != three {
		t.Errorf("resolved %+v", r)
	}
	env.Settle(t, ns)
	unmoved(t, ns, env.Journal(t))
	harness.Edit(t, env, named(ns), func(pkg *corev1alpha1.Package) {
		pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "bazaar"}
	})
	awaitVersion(t, ns, "9.0.0")
}
