package install_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// withNeeds returns a shop that depends on db and mail.
func withNeeds() client.Object {
	offered := clustertest.OfferedAs("shop", "1.0.0").(*corev1alpha1.AvailablePackage)
	for _, name := range []string{"db", "mail"} {
		offered.Spec.Versions[0].Dependencies = append(offered.Spec.Versions[0].Dependencies,
			corev1alpha1.Dependency{Name: name, Package: &corev1alpha1.DependencyPackage{Name: name + ".example.com"}})
	}
	return offered
}

func TestInstallOverrides(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, withNeeds())
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "shop.example.com", "shop", "--wait=false", "--values", clitest.ValuesFile(t, "title: Corner\n"),
		"--override", `db={"package":{"version":"<2"},"configFrom":[{"configMapKeyRef":{"name":"db","key":"values"}}]}`, "--override", `mail=package: {name: post.example.com}`)
	if got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	pkg, err := c.Read(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "shop"})
	require.NoError(t, err)
	d := pkg.PackageSpec().Dependencies
	if d == nil || len(d.Overrides) != 2 || d.Overrides[0].Package.Version != "<2" || d.Overrides[1].Package.Name != "post.example.com" ||
		d.Overrides[0].ConfigFrom[0].ConfigMapKeyRef.Name != "db" {
		t.Errorf("%+v", pkg.PackageSpec())
	}

	// An override that is not named stays.
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "upgrade", "shop", "--wait=false", "--override", `db={"package":{"version":"<3"}}`)
	if got.Code != 0 || !strings.Contains(got.Out, "changed: dependencies") {
		t.Fatalf("%+v", got)
	}
	if pkg, err = c.Read(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	if d := pkg.PackageSpec().Dependencies; d.Overrides[0].Package.Version != "<3" ||
		len(d.Overrides[0].ConfigFrom) != 1 || d.Overrides[1].Package == nil {
		t.Errorf("%+v", d)
	}
}

func TestInstallOverridesRefused(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, withNeeds())

	for want, args := range map[string][]string{
		"has no NAME=":                  {"--override", "db"},
		"--override db changes nothing": {"--override", "db={}"},
		`unknown field "version". It takes package{name, version, prereleases} and configFrom`: {"--override", "db={version: 1}"},
		"--override db: package.version": {"--override", "db={package: {version: what}}"},
		"is given twice":                 {"--override", "db={package: {version: '1'}}", "--override", "db={package: {version: '2'}}"},
		"shop.example.com: version 1.0.0 has no dependency dbs. Did you mean": {"--override", "dbs={package: {version: <2}}"},
		"version 1.0.0 has no dependency other. It has: db, mail":             {"--override", "other={package: {version: <2}}"},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"install", "shop.example.com", "shop", "--wait=false"}, args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v\nwant %s", args, got, want)
		}
	}
	var left corev1.ConfigMapList
	if err := c.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("left: %v %+v", err, left.Items)
	}
}
