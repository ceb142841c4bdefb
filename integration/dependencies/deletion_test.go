package dependencies_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func deleting(s *corev1alpha1.PackageSpec) {
	s.Dependencies = &corev1alpha1.PackageDependencies{DeletionPolicy: corev1alpha1.DeletionPolicyDelete}
}

// A package is deleted after its dependents no longer exist.
func TestDeletionIsHeld(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "shop", of("1.0.0", on("db", "db", "")))
	offer(t, ns, "db", of("1.0.0"))
	env.Create(t, wish(ns, "database", "db", ""))
	awaitVersion(t, ns, "database", "1.0.0")
	env.Create(t, wish(ns, "shop", "shop", ""))
	awaitVersion(t, ns, "shop", "1.0.0")
	from := env.Journal(t)
	require.NoError(t, env.Client.Delete(t.Context(), named(ns, "database")))
	await(t, named(ns, "database"), "is held", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionDeletionHeld, metav1.ConditionTrue, corev1alpha1.ReasonRequired, "Package "+ns+"/shop", corev1alpha1.DeleteRequiredAnnotation)
	})
	env.Settle(t, ns)
	for _, e := range from.Rest(t, ns) {
		if e.Verb == "delete" {
			t.Errorf("%s %s", e.Verb, e.RequestURI)
		}
	}
	require.NoError(t, env.Client.Delete(t.Context(), named(ns, "shop")))
	env.WaitGone(t, patience, named(ns, "database"))
	var gone []string
	for _, e := range from.Rest(t, ns) {
		if e.Verb == "delete" && e.Object.Resource == "configmaps" && e.Code < 300 {
			gone = append(gone, e.Object.Name)
		}
	}
	require.Equal(t, []string{"shop", "database"}, gone)
}

// An annotation permits the deletion of a package with dependents.
func TestDeleteRequired(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "shop", of("1.0.0", on("db", "db", "")))
	offer(t, ns, "db", of("1.0.0"))
	env.Create(t, wish(ns, "database", "db", ""))
	awaitVersion(t, ns, "database", "1.0.0")
	env.Create(t, wish(ns, "shop", "shop", ""))
	awaitVersion(t, ns, "shop", "1.0.0")
	require.NoError(t, env.Client.Delete(t.Context(), named(ns, "database")))
	harness.Edit(t, env, named(ns, "database"), func(p *corev1alpha1.Package) {
		p.Annotations = map[string]string{corev1alpha1.DeleteRequiredAnnotation: "true"}
	})
	env.WaitGone(t, patience, named(ns, "database"))
	awaitVersion(t, ns, "shop-db", "1.0.0") // the missing one is installed again
}

// The deletion of a package also removes dependencies that were only installed for it, after its
// own objects, or keeps them, depending on the policy.
func TestDeletionPolicyOfDependencies(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "shop", of("1.0.0", on("orm", "orm", "")))
	offer(t, ns, "orm", of("1.0.0", on("db", "db", "")))
	offer(t, ns, "db", of("1.0.0"))
	offer(t, ns, "stats", of("1.0.0", on("db", "db", "")))
	env.Create(t, wish(ns, "shop", "shop", "", deleting))
	awaitVersion(t, ns, "shop", "1.0.0")
	env.Create(t, wish(ns, "stats", "stats", ""))
	awaitVersion(t, ns, "stats", "1.0.0")
	require.NoError(t, env.Client.Delete(t.Context(), named(ns, "shop")))
	env.WaitGone(t, patience, named(ns, "shop-orm"))
	await(t, named(ns, "shop-orm-db"), "is released", func(p *corev1alpha1.Package) error {
		if _, found := p.Labels[corev1alpha1.RequiredByLabelPrefix+"shop-orm"]; found || p.Labels[corev1alpha1.RequiredByLabelPrefix+"stats"] != ns {
			return fmt.Errorf("labels %v", p.Labels)
		}
		return nil
	})
	require.NoError(t, env.Client.Delete(t.Context(), named(ns, "stats")))
	env.WaitGone(t, patience, named(ns, "stats"))
	env.Settle(t, ns)
	require.Equal(t, []string{"shop-orm-db=1.0.0"}, packages(t, ns), "an orphan stays")
}

// A user's change of a generated package is refused with the remedy, and accepted with it.
func TestAdoption(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "shop", of("1.0.0", on("db", "db", "")))
	offer(t, ns, "db", of("1.0.0"), of("1.1.0"))
	env.Create(t, wish(ns, "shop", "shop", ""))
	awaitVersion(t, ns, "shop", "1.0.0")
	constrain := func(p *corev1alpha1.Package) { p.Spec.PackageRef.Version = ">=1" }
	if err := harness.TryEdit(t, env, named(ns, "shop-db"), constrain); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), corev1alpha1.AdoptAnnotation) {
		t.Errorf("the change was not refused: %v", err)
	}
	harness.Edit(t, env, named(ns, "shop-db"), func(p *corev1alpha1.Package) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, corev1alpha1.AdoptAnnotation, "true")
	})
	await(t, named(ns, "shop-db"), "is the user's", func(p *corev1alpha1.Package) error {
		if p.Labels[corev1alpha1.GeneratedLabel] != "" {
			return fmt.Errorf("labels %v", p.Labels)
		}
		return nil
	})
	harness.Edit(t, env, named(ns, "shop-db"), constrain)
	await(t, named(ns, "shop"), "finds it installed", func(p *corev1alpha1.Package) error {
		if got := dependency(p, "db"); got != "AlreadyInstalled 1.1.0 Package/shop-db" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}
