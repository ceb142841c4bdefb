package operate_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// installedWith returns an available package, which is generated if its name has a dot, with
// dependencies by name. Each is the package of that name below it, or another one for
// "name=package".
func installedWith(namespace, name string, needs ...string) client.Object {
	pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
	pkg.SetNamespace(namespace)
	pkg.SetName(name)
	pkg.SetGeneration(1)
	if strings.Contains(name, ".") {
		pkg.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
	}
	status := clustertest.Available()
	status.Resolved.CatalogName = name + ".example.com"
	for _, need := range needs {
		dep, to, other := strings.Cut(need, "=")
		if !other {
			to = name + "." + dep
		}
		status.Dependencies = append(status.Dependencies, corev1alpha1.DependencyStatus{
			Dependency: corev1alpha1.Dependency{Name: dep, Package: &corev1alpha1.DependencyPackage{Name: to + ".example.com"}}, Version: "1.2.0",
			PackageRef: &corev1alpha1.DependencyReference{Kind: corev1alpha1.ScopeOf(namespace).Kind("Package"), Namespace: namespace, Name: to},
			Conditions: []metav1.Condition{clustertest.Condition(corev1alpha1.ConditionSatisfied, "True", corev1alpha1.ReasonInstalledByThisPackage, "")},
		})
	}
	*pkg.PackageStatus() = status
	return pkg.(client.Object)
}

func TestInstalledPackages(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, installedWith("shop", "front", "db"), installedWith("shop", "front.db"), installedWith("other", "blog"), installedWith("", "certs"))
	const front = "package shop/front  front.example.com 1.2.0  available\n└── db: package shop/front.db  front.db.example.com 1.2.0  available  generated  needs any version\n"
	for _, test := range []struct {
		args string
		want string
	}{
		{"deps", front},
		{"deps -A -o json |jq .packages[].name", "certs\nblog\nfront\nfront.db\n"},
		{"deps front", front + "\npackage shop/front  front.example.com 1.2.0: installed by a user\nNo package depends on it.\n"},
		{"deps package front.db -o json |jq .why.neededBy[0].dependency", "db\n"},
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", strings.Fields(test.args)...); got.Code != 0 || got.Out != test.want {
			t.Errorf("%s: %+v\nwant\n%s", test.args, got, test.want)
		}
	}
	for args, want := range map[string]string{
		"deps front -A":     "--all-namespaces shows everything",
		"deps nothing":      "there is neither a package nothing in namespace shop nor a clusterpackage of that name",
		"deps -A --cluster": "--all-namespaces shows everything",
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", strings.Fields(args)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}

// The dependents of a package are named before it is deleted, and the remaining objects afterwards.
func TestDeleteRequired(t *testing.T) {
	t.Parallel()
	packages := func() []client.Object {
		return []client.Object{installedWith("shop", "front", "db"), installedWith("shop", "front.db", "tls"), installedWith("shop", "front.db.tls")}
	}
	c := clustertest.FakeCluster(t, packages()...)
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "delete", "front.db", "--wait=false")
	want := "warning: package shop/front.db is needed by package shop/front: its deletion is held until they are deleted. " +
		"To delete it before them: kubectl package delete package/front.db -n shop --force-required\n"
	if got.Code != 0 || got.Err != want {
		t.Errorf("%+v", got)
	}
	c = clustertest.FakeCluster(t, packages()...)
	kept, err := c.Read(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "front.db"})
	require.NoError(t, err)
	kept.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
	require.NoError(t, c.Update(t.Context(), kept.(client.Object)))
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "delete", "front.db", "--force-required", "--wait=false"); got.Code != 0 || !strings.Contains(got.Err, "they lose it") {
		t.Errorf("%+v", got)
	}
	kept, err = c.Read(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "front.db"})
	if err != nil || kept.GetAnnotations()[corev1alpha1.DeleteRequiredAnnotation] != "true" || kept.GetDeletionTimestamp() == nil {
		t.Errorf("%v %+v", err, kept)
	}

	c = clustertest.FakeCluster(t, packages()...)
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "delete", "front")
	if got.Code != 0 || !strings.HasSuffix(got.Err, "note: no package needs package shop/front.db any more: kubectl package delete package/front.db -n shop\n") {
		t.Errorf("%+v", got)
	}
}
