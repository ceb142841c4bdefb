package dependencies_test

import (
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A diamond has one instance of the shared dependency, in the highest version that both sides
// accept. Objects are not written more often than for packages without dependencies.
func TestDiamond(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "top", of("1.0.0", on("left", "left", ""), on("right", "right", "")))
	offer(t, ns, "left", of("1.0.0", on("base", "base", ">=1")))
	offer(t, ns, "right", of("1.0.0", on("base", "base", "<2")))
	offer(t, ns, "base", of("1.0.0"), of("1.5.0"), of("2.0.0"))
	from := env.Journal(t)
	env.Create(t, wish(ns, "shop", "top", ""))
	awaitVersion(t, ns, "shop", "1.0.0")
	require.Equal(t, []string{"shop-left-base=1.5.0", "shop-left=1.0.0", "shop-right=1.0.0", "shop=1.0.0"}, packages(t, ns))
	base := named(ns, "shop-left-base")
	harness.Edit(t, env, base, func(*corev1alpha1.Package) {})
	if base.Labels["required-by.package-operator.run/shop-left"] != ns || base.Labels["required-by.package-operator.run/shop-right"] != ns || base.Labels[corev1alpha1.GeneratedLabel] != "true" {
		t.Errorf("labels %v", base.Labels)
	}
	entries := from.Rest(t, ns)
	written := map[string]int{}
	for _, e := range entries {
		if e.Object.Group == "rbac.authorization.k8s.io" {
			t.Errorf("a dependency grants no rights: %s %s", e.Verb, e.RequestURI)
		}
		if e.Object.Subresource == "" && e.Object.Resource != "events" && (e.Verb == "patch" || e.Verb == "create") {
			written[e.Object.Resource+" "+e.Object.Name]++
		}
	}
	for what, times := range written {
		if times > 1 {
			t.Errorf("%s was written %d times", what, times)
		}
	}
	env.Journal(t).Silent(t, ns)
}

// Two namespaces do not share dependencies: each has its own, even of a package that claims to
// be unique in the cluster.
func TestNamespacesShareNothing(t *testing.T) {
	t.Parallel()
	one := env.TestNamespace(t)
	two := one + "-2"
	env.Namespace(t, two)
	for _, ns := range []string{one, two} {
		offer(t, ns, "shop", of("1.0.0", on("operator", "operator", ">=1"), on("db", "db", "")))
		offer(t, ns, "operator", release{Version: "1.0.0", Unique: corev1alpha1.UniqueScopeCluster})
		offer(t, ns, "db", of("1.0.0"))
	}
	env.Create(t, wish(one, "shop", "shop", ""))
	awaitVersion(t, one, "shop", "1.0.0")
	env.Create(t, wish(two, "shop", "shop", ""))
	pkg := awaitVersion(t, two, "shop", "1.0.0")
	if got := dependency(pkg, "operator"); got != "InstalledByThisPackage 1.0.0 Package/shop-operator" || pkg.Status.Dependencies[0].PackageRef.Namespace != two {
		t.Error(got, pkg.Status.Dependencies)
	}
	for _, ns := range []string{one, two} {
		require.Equal(t, []string{"shop-db=1.0.0", "shop-operator=1.0.0", "shop=1.0.0"}, packages(t, ns), ns)
	}
}

// A second parent whose range excludes the installed version fails, and the first is
// untouched. It is installed when the first one's range allows.
func TestExcludingRange(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "shop", of("1.0.0", on("db", "db", "<2")), of("1.1.0", on("db", "db", "<3")))
	offer(t, ns, "stats", of("1.0.0", on("db", "db", ">=2")))
	offer(t, ns, "db", of("1.0.0"), of("2.0.0"), of("2.1.0"))
	env.Create(t, wish(ns, "shop", "shop", "1.0.0"))
	awaitVersion(t, ns, "shop", "1.0.0")
	env.Settle(t, ns)
	from := env.Journal(t)
	env.Create(t, wish(ns, "stats", "stats", ""))
	awaitRefusal(t, ns, "stats", corev1alpha1.ReasonDependenciesUnsatisfied, "VersionMismatch", "Package "+ns+"/shop", "<2", ">=2")
	for _, e := range from.Rest(t, ns) {
		if e.Verb != "get" && !strings.HasPrefix(e.Object.Name, "stats") {
			t.Errorf("%s %s", e.Verb, e.RequestURI)
		}
	}
	harness.Edit(t, env, named(ns, "shop"), func(p *corev1alpha1.Package) { p.Spec.PackageRef.Version = "1.1.0" })
	awaitVersion(t, ns, "stats", "1.0.0")
	awaitVersion(t, ns, "shop", "1.1.0")
	if got := packages(t, ns); !slices.Contains(got, "shop-db=2.0.0") {
		t.Errorf("the lowest version that both accept: %v", got)
	}
}

// A user's own package is changed with consent only.
func TestOwnPackage(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	offer(t, ns, "shop", of("1.0.0", on("db", "db", ">=2")))
	offer(t, ns, "db", of("1.0.0"), of("2.0.0"), of("3.0.0"))
	env.Create(t, wish(ns, "database", "db", "<2"))
	awaitVersion(t, ns, "database", "1.0.0")
	env.Create(t, wish(ns, "shop", "shop", ""))
	awaitRefusal(t, ns, "shop", corev1alpha1.ReasonDependenciesUnsatisfied, "Package "+ns+"/database", "allowDependents")
	harness.Edit(t, env, named(ns, "database"), func(p *corev1alpha1.Package) {
		p.Spec.UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true}
	})
	pkg := awaitVersion(t, ns, "shop", "1.0.0")
	if got := dependency(pkg, "db"); got != "AlreadyInstalled 2.0.0 Package/database" {
		t.Error(got)
	}
}
