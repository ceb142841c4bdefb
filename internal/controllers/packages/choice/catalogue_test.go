package choice

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/test/require"
)

var shopAPI = corev1alpha1.ProvidedAPI{APIVersion: "example.com/v1", Kind: "Shop"}

// providing are the offers of a package with an API in a namespace.
func providing(namespace, name string) *corev1alpha1.AvailablePackage {
	v := corev1alpha1.AvailableVersion{Version: "1.0.0", Image: image, Repository: "stable", Provides: []corev1alpha1.ProvidedAPI{shopAPI}}
	return &corev1alpha1.AvailablePackage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       corev1alpha1.AvailablePackageSpec{PackageName: name, Versions: []corev1alpha1.AvailableVersion{v}},
	}
}

// fetched is a repository whose offers are known.
func fetched(namespace string) *corev1alpha1.PackageRepository {
	return &corev1alpha1.PackageRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stable"},
		Status:     corev1alpha1.PackageRepositoryStatus{Artifact: &corev1alpha1.RepositoryArtifact{Digest: digest}},
	}
}

// offering returns a Catalogue whose caches have some objects, and counts the lists that it reads.
func offering(t *testing.T, objects ...client.Object) (*Followers, client.Client, *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1alpha1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	reads := 0
	build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, index := range Indexes() {
		build = build.WithIndex(index.Of, index.Field, index.Values)
	}
	c := build.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			reads++
			return c.List(ctx, list, options...)
		},
	}).Build()
	memory := &Memory{}
	return &Followers{
		Catalogue: &Catalogue{Reader: c, Remembered: func(corev1alpha1.GenericPackage) *Memory { return memory }},
		Enqueue:   func(types.NamespacedName) {}, Offered: func(string, *corev1alpha1.AvailablePackageSpec, *corev1alpha1.AvailablePackageSpec) {},
	}, c, &reads
}

// However many packages claim an API, they are read once, not at each reconcile of the Packages
// that name it.
func TestProviderIsRemembered(t *testing.T) {
	t.Parallel()
	const claims = 50
	objects := []client.Object{fetched("team")}
	for i := range claims {
		objects = append(objects, providing("team", fmt.Sprintf("shop-%02d", i)))
	}
	f, server, reads := offering(t, objects...)
	pkg := newPackage(follows(""))
	pkg.Spec.PackageRef.Name, pkg.Spec.PackageRef.API = "", (*corev1alpha1.APIReference)(&shopAPI)
	follow := func(others, most int) {
		t.Helper()
		*reads = 0
		provider, _, err := f.Catalogue.follow(t.Context(), pkg)
		if err != nil || len(provider.Others)+provider.More != others || *reads > most {
			t.Errorf("%v others of %d after %d reads, %v", provider, others, *reads, err)
		}
	}
	const atRest = 4 // repositories and the offers of the one package, of both scopes
	follow(claims, atRest+2+2*claims)
	follow(claims, atRest)
	more := providing("team", "market")
	require.NoError(t, server.Create(t.Context(), more))
	f.OffersChanged(t.Context(), nil, providing("elsewhere", "market"))
	follow(claims, atRest) // the change belongs to another namespace
	f.OffersChanged(t.Context(), nil, more)
	follow(claims+1, atRest+2+2*(claims+1))
	follow(claims+1, atRest)
	pkg.Status.LastAttempted = &corev1alpha1.AttemptedVersion{PackageName: "market", Version: "1.0.0"}
	follow(claims, atRest+2+2*(claims+1))
	if key, err := (&offerings{read: make([]string, 10_000)}).key(versions.Request{}, f.Catalogue.Remembered(pkg).provider.Provider, Origin{}); err != nil || len(key) > 64 {
		t.Errorf("a key of %d bytes, %v", len(key), err)
	}
}
