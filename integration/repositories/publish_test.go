package repositories_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A repository's offers are published automatically: one object per package, with the versions, the
// display data and the notes. A new version changes only one object.
func TestAddedRepositoryIsPublished(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	from, began := env.Journal(t), time.Now()
	r := newRepository(ns, "stable", inline("shop@1.0.0", "shop@1.1.0", "cart@2.0.0"))
	env.Create(t, r)
	awaitReady(t, r)
	awaitOffers(t, ns, "shop@1.0.0=stable", "shop@1.1.0=stable", "cart@2.0.0=stable")
	requests := tally(began, from.Rest(t, ns))
	want := map[string]int{"create availablepackages": 2, "update packagerepositories/status": 1, "create events": 1}
	require.Equal(t, want, requests, "requests")
	if s := r.Status; s.Packages != 2 || s.Versions != 3 || s.Artifact == nil || len(s.Problems) > 0 || s.ObservedGeneration != r.Generation {
		t.Errorf("status %+v", s)
	}
	shop := available(t, ns, "shop")
	if v := shop.Spec.Versions[1]; v.Version != "1.1.0" || v.Image == "" || v.Release == nil || v.Release.Notes != "News of 1.1.0" {
		t.Errorf("version %+v", v)
	}
	if shop.Spec.Display == nil || shop.Spec.Display.ShortDescription == "" || len(shop.OwnerReferences) > 0 {
		t.Errorf("display %+v, owners %+v", shop.Spec.Display, shop.OwnerReferences)
	}
	if got := events(t, ns); !slices.Equal(got, []string{"Normal/Fetched"}) {
		t.Errorf("events %v", got)
	}
	from, began = env.Journal(t), time.Now()
	harness.Edit(t, env, r, func(r *corev1alpha1.PackageRepository) {
		r.Spec.Source = inline("shop@1.0.0", "shop@1.1.0", "cart@2.0.0", "cart@2.1.0")
	})
	awaitOffers(t, ns, "shop@1.0.0=stable", "shop@1.1.0=stable", "cart@2.0.0=stable", "cart@2.1.0=stable")
	want = map[string]int{"update availablepackages": 1, "update packagerepositories/status": 1, "create events": 1}
	require.Equal(t, want, tally(began, from.Rest(t, ns)), "requests of a new version")
}

// The packages of a ClusterPackageRepository are ClusterAvailablePackages.
func TestClusterRepository(t *testing.T) {
	t.Parallel()
	r := &corev1alpha1.ClusterPackageRepository{ObjectMeta: metav1.ObjectMeta{Name: "everyone"}}
	r.Spec.Source = inline("cluster-shop@1.0.0")
	env.Create(t, r)
	awaitReady(t, r)
	awaitOffers(t, "", "cluster-shop@1.0.0=everyone")
	require.NoError(t, env.Client.Delete(t.Context(), r))
	awaitOffers(t, "")
}
