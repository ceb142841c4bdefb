package dependencies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// Two packages whose dependencies need one package in one version cannot be upgraded one after the other: the first one
// waits for the second, and then both are.
func TestUpgradeTogether(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	for _, pair := range [][2]string{{"shop", "orm"}, {"stats", "etl"}} {
		offer(t, ns, pair[0], of("1.0.0", on("dep", pair[1], "1.0.0")), of("2.0.0", on("dep", pair[1], "2.0.0")))
		offer(t, ns, pair[1], of("1.0.0", on("db", "db", "1.0.0")), of("2.0.0", on("db", "db", "2.0.0")))
	}
	offer(t, ns, "db", of("1.0.0"), of("2.0.0"))
	// One that cannot be satisfied holds up no other, whether it has to do with them or not.
	offer(t, ns, "hopeless", of("1.0.0", on("db", "db", "3.0.0")), of("2.0.0", on("dep", "missing", "")))
	for _, version := range []string{"1.0.0", "2.0.0"} {
		name := "hopeless-" + version[:1]
		env.Create(t, wish(ns, name, "hopeless", version))
		awaitRefusal(t, ns, name, corev1alpha1.ReasonDependenciesUnsatisfied)
	}
	for _, name := range []string{"shop", "stats"} {
		env.Create(t, wish(ns, name, name, "1.0.0"))
		awaitVersion(t, ns, name, "1.0.0")
	}
	to := func(p *corev1alpha1.Package) { p.Spec.PackageRef.Version = "2.0.0" }
	harness.Edit(t, env, named(ns, "shop"), to)
	awaitRefusal(t, ns, "shop", corev1alpha1.ReasonDependenciesUnsatisfied, "VersionMismatch", "stats")
	harness.Edit(t, env, named(ns, "stats"), to)
	awaitVersion(t, ns, "shop", "2.0.0")
	awaitVersion(t, ns, "stats", "2.0.0")
	if diff := cmp.Diff([]string{"hopeless-1=", "hopeless-2=", "shop.dep.db=2.0.0", "shop.dep=2.0.0", "shop=2.0.0", "stats.dep=2.0.0", "stats=2.0.0"}, packages(t, ns)); diff != "" {
		t.Error(diff)
	}
}
