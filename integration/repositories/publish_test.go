package repositories_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// What a repository offers is published without further action: one object for each package, with the versions, the
// display data and the notes.
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
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests: %s", diff)
	}
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

// A new version changes one object; one that is gone, its object; the last one deletes it.
func TestContentIsFollowed(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	r := newRepository(ns, "stable", inline("shop@1.0.0", "cart@2.0.0", "till@1.0.0"))
	env.Create(t, r)
	awaitReady(t, r)
	env.Settle(t, ns)
	from, began := env.Journal(t), time.Now()
	harness.Edit(t, env, r, func(r *corev1alpha1.PackageRepository) {
		r.Spec.Source = inline("shop@1.0.0", "shop@1.1.0", "cart@2.0.0", "till@1.0.0")
	})
	awaitOffers(t, ns, "shop@1.0.0=stable", "shop@1.1.0=stable", "cart@2.0.0=stable", "till@1.0.0=stable")
	want := map[string]int{"update availablepackages": 1, "update packagerepositories/status": 1, "create events": 1}
	if diff := cmp.Diff(want, tally(began, from.Rest(t, ns))); diff != "" {
		t.Errorf("requests of a new version: %s", diff)
	}
	harness.Edit(t, env, r, func(r *corev1alpha1.PackageRepository) { r.Spec.Source = inline("shop@1.1.0", "cart@2.0.0") })
	awaitOffers(t, ns, "shop@1.1.0=stable", "cart@2.0.0=stable")
}

// Two repositories that offer one version differently: the higher priority wins, else the
// present owner, and the other one says so. When the owner is deleted, the other one's
// version takes its place.
func TestConflict(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	first, second := newRepository(ns, "first", inline("shop@1.0.0", "shop@1.1.0")), newRepository(ns, "second", inline("shop@1.0.0@other", "shop@2.0.0"))
	env.Create(t, first)
	awaitReady(t, first)
	env.Create(t, second)
	awaitReady(t, second)
	conflicting := func(r *corev1alpha1.PackageRepository) error {
		return harness.HasCondition(r, corev1alpha1.ConditionConflicting, metav1.ConditionTrue, corev1alpha1.ReasonVersionConflict, "shop 1.0.0", "first")
	}
	await(t, second, "to report the conflict", conflicting)
	awaitOffers(t, ns, "shop@1.0.0=first", "shop@1.1.0=first", "shop@2.0.0=second")

	harness.Edit(t, env, second, func(r *corev1alpha1.PackageRepository) { r.Spec.Priority = 10 })
	awaitOffers(t, ns, "shop@1.0.0=second", "shop@1.1.0=first", "shop@2.0.0=second")
	await(t, second, "to report no conflict", lacksConflict)

	harness.Edit(t, env, second, func(r *corev1alpha1.PackageRepository) { r.Spec.Priority = 0 })
	await(t, first, "to report the conflict", func(r *corev1alpha1.PackageRepository) error {
		return harness.HasCondition(r, corev1alpha1.ConditionConflicting, metav1.ConditionTrue, corev1alpha1.ReasonVersionConflict, "shop 1.0.0", "second")
	})
	require.NoError(t, env.Client.Delete(t.Context(), second))
	awaitOffers(t, ns, "shop@1.0.0=first", "shop@1.1.0=first")
	await(t, first, "to report no conflict", lacksConflict)
}

func lacksConflict(r *corev1alpha1.PackageRepository) error {
	for _, c := range r.Status.Conditions {
		if c.Type == corev1alpha1.ConditionConflicting {
			return fmt.Errorf("there is %+v", c)
		}
	}
	return nil
}

// A repository that is deleted offers nothing any more; paused does not keep it.
func TestDeletedRepository(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	r := newRepository(ns, "stable", inline("shop@1.0.0"))
	env.Create(t, r)
	awaitReady(t, r)
	harness.Edit(t, env, r, func(r *corev1alpha1.PackageRepository) { r.Spec.Paused = true })
	await(t, r, "to be paused", func(r *corev1alpha1.PackageRepository) error {
		return harness.HasCondition(r, corev1alpha1.ConditionPaused, metav1.ConditionTrue, corev1alpha1.ReasonPaused)
	})
	require.NoError(t, env.Client.Delete(t.Context(), r))
	awaitOffers(t, ns)
	env.WaitGone(t, patience, r)
}

// Published offers that others change or delete are put back.
func TestEditedAvailablePackageIsPutBack(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	r := newRepository(ns, "stable", inline("shop@1.0.0", "cart@1.0.0"))
	env.Create(t, r)
	awaitReady(t, r)
	harness.Edit(t, env, available(t, ns, "shop"), func(a *corev1alpha1.AvailablePackage) { a.Spec.Versions[0].Repository = "forged" })
	require.NoError(t, env.Client.Delete(t.Context(), available(t, ns, "cart")))
	awaitOffers(t, ns, "shop@1.0.0=stable", "cart@1.0.0=stable")
}
