package planning

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// A plan with a missing package is refused. A plan with a package to install has changes.
func TestPlanOfDependencies(t *testing.T) {
	t.Parallel()
	step := dryrun.Installation{Object: "Package shop/shop-db", Package: "db.example.com", Version: "1.2.0", Because: []string{"Package shop/shop → db (^1)"}}
	raised := dryrun.Installation{Object: "ClusterPackage certs", Package: "certs.example.com", From: "1.0.0", Version: "2.0.0"}
	p := &dryrun.Plan{Kind: "Package", Namespace: "shop", Name: "shop", Outcome: dryrun.OutcomeNothing}
	p.Depend([]dryrun.Dependency{
		{Name: "db", By: "Package shop/shop-db", Version: "1.2.0", Reason: "NotAvailable"},
		{Name: "certs", Satisfied: true, By: "ClusterPackage certs", Version: "2.0.0", Reason: "AlreadyInstalled"},
		{Name: "mail", Optional: true, Failed: true, Message: "No repository offers it."},
	}, []dryrun.Installation{step, raised})
	if p.Outcome != dryrun.OutcomeChanges || p.Unsatisfied() != 0 {
		t.Errorf("%+v", p)
	}
	text := Text(p, terminal.Plain())
	for _, want := range []string{
		"    · db     Package shop/shop-db  1.2.0  NotAvailable\n    ✓ certs  ClusterPackage certs  2.0.0  AlreadyInstalled\n    ✗ mail",
		"    + Package shop/shop-db  db.example.com 1.2.0\n        needed by Package shop/shop → db (^1)\n    ~ ClusterPackage certs  certs.example.com 1.0.0 → 2.0.0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	p.Depend([]dryrun.Dependency{{Name: "mail", Failed: true}}, nil)
	if p.Outcome != dryrun.OutcomeRefused || p.Unsatisfied() != 1 {
		t.Errorf("%+v", p)
	}
}

// A plan is for the highest version whose dependencies can be satisfied, or for the installed
// version if there is none.
func TestPlanChoosesByNeeds(t *testing.T) {
	t.Parallel()
	db := clustertest.OfferedAs("shop", "1.0.0", "1.1.0").(*corev1alpha1.AvailablePackage)
	db.Name, db.Spec.PackageName = "db.example.com", "db.example.com"
	shop := clustertest.OfferedAs("shop", "1.0.0", "2.0.0", "3.0.0").(*corev1alpha1.AvailablePackage)
	for i, want := range []string{">=1", ">=1.1", ">=3"} {
		shop.Spec.Versions[i].Dependencies = []corev1alpha1.Dependency{
			{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: want}}},
		}
	}
	cl := clustertest.FakeCluster(t, db, shop)
	for _, test := range []struct{ constraint, installed, want, why string }{
		{"", "", "2.0.0", "shop.example.com: 2.0.0 is the highest version that fits and whose dependencies can be satisfied; 3.0.0 waits for its dependencies: "},
		{"<3", "", "2.0.0", ""},
		{"<3", "1.0.0", "2.0.0", ""},
		{">=3", "", "3.0.0", ""},
		{"", "2.0.0", "2.0.0", "2.0.0 is the highest"},
	} {
		pkg := &corev1alpha1.Package{}
		pkg.Namespace, pkg.Name = "shop", "shop"
		pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: test.constraint}}
		if test.installed != "" {
			pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Version: test.installed, Repository: "PackageRepository/stable", PackageName: "shop.example.com"}
		}
		choose := desired.ChooserFor(cl, "shop")
		request := versions.Request{Selection: pkg.Spec.PackageRef.VersionSelection, Installed: test.installed}
		found, err := choose.MustChoose(t.Context(), "shop.example.com", request)
		require.NoError(t, err)
		resolution, err := choose.Resolution(t.Context(), cl.RESTMapper())
		require.NoError(t, err)
		why, err := resolution.ChooseByNeeds(found, pkg, request)
		if err != nil || found.Version().Version.Version != test.want || !strings.Contains(why, test.why) || (test.why == "") != (why == "") {
			t.Errorf("%+v: %s, %q, %v", test, found.Version().Version.Version, why, err)
		}
	}
}
