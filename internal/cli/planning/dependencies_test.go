package planning

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
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
		require.Contains(t, text, want)
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
		found, err := choose.MustChoose(t.Context(), "shop.example.com", request, nil)
		require.NoError(t, err)
		resolution, err := choose.Resolution(t.Context(), cl.RESTMapper())
		require.NoError(t, err)
		why, err := resolution.ChooseByNeeds(found, pkg, request)
		if err != nil || found.Version().Version.Version != test.want || !strings.Contains(why, test.why) || (test.why == "") != (why == "") {
			t.Errorf("%+v: %s, %q, %v", test, found.Version().Version.Version, why, err)
		}
	}
}

// If no repository offers the installed version any more, plan uses its recorded image. Another
// constraint is refused.
func TestPlanOfAWithdrawnVersion(t *testing.T) {
	t.Parallel()
	before := clustertest.Following("", "3.0.0")
	before.Status.Resolved.Image = "example.com/shop:v3"
	for constraint, want := range map[string]string{"": "example.com/shop:v3", "3.0.0": "example.com/shop:v3", ">=3": ""} {
		p := &Planned{Target: progress.TargetOf(before), Before: before, Pkg: before.DeepCopy()}
		p.Pkg.PackageSpec().PackageRef.Version = constraint
		err := chooseVersion(t.Context(), clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0")), p)
		if image := p.image(); image != want || (err == nil) != (want != "") || len(p.warnings) != len(want)/len("example.com/shop:v3") {
			t.Errorf("%q: %q, %v, %q", constraint, image, err, p.warnings)
		}
	}
}

// The summary is first, packages without changes add nothing else, and the exit code shows the
// result.
func TestPlans(t *testing.T) {
	t.Parallel()
	all := &plans{}
	add := func(outcome dryrun.Outcome, err error) {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.ToLower(string(outcome))}}
		all.add(pkg, &dryrun.Plan{Kind: "Package", Namespace: "shop", Name: pkg.Name, Outcome: outcome}, err)
	}
	for _, step := range []struct {
		outcome dryrun.Outcome
		err     error
		code    int
		text    string
	}{
		{dryrun.OutcomeNothing, nil, 0, "1 package planned: 1 nothing to do, 0 with changes, 0 refused, 0 failed\n"},
		{dryrun.OutcomeChanges, nil, 2, "2 packages planned: 1 nothing to do, 1 with changes, 0 refused, 0 failed\n\npackage shop/changes"},
		{"web", errors.New("no\x1b image"), 1, "\n✗ package shop/web\n    no\\u001b image\n\npackage shop/changes"},
		{dryrun.OutcomeRefused, nil, 1, "\npackage shop/refused"},
	} {
		add(step.outcome, step.err)
		var code command.ExitCode
		if err := all.result(); (err != nil) != (step.code != 0) || err != nil && (!errors.As(err, &code) || int(code) != step.code) {
			t.Errorf("after %s: %v, want %d", step.outcome, err, step.code)
		}
		if text := all.text(terminal.Plain()); !strings.Contains(text, step.text) || strings.Contains(text, "shop/nothing") {
			t.Errorf("after %s:\n%s", step.outcome, text)
		}
	}
}

// A refusal about immutable fields names the remedy of its cause, and else the usual one.
func TestRefusals(t *testing.T) {
	t.Parallel()
	crd := objectdiff.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "a.b"}
	for field, want := range map[string]string{
		"status.storedVersions[0]": "immutable: status.storedVersions[0]. Keep the version until all objects are stored in another one",
		"spec.group":               "immutable: spec.group. Keep the field as it was",
	} {
		printer := PrinterFor(terminal.Plain())
		printer.Refusals([]dryrun.Refusal{{ID: crd, Fields: []string{field}, Message: field + `: Invalid value: "x": no`}})
		if text := printer.String(); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// A plan shows texts of a cluster and a package, but no control characters for a terminal.
func TestPlanText(t *testing.T) {
	t.Parallel()
	p := &dryrun.Plan{
		Kind: "Package", Namespace: "shop", Name: "web", Outcome: dryrun.OutcomeChanges, Revision: 3,
		From: &dryrun.Release{Image: "r/web:1", Package: "web", Version: "1.0.0", Revision: 2},
		To:   dryrun.Release{Image: "r/web:2", Package: "web", Version: "2.0.0"},
		Phases: []dryrun.Phase{
			{Name: "config", Reached: true, Unchanged: 2, Changes: []dryrun.Change{
				{Action: dryrun.ActionRelabel, ID: objectdiff.ID{Kind: "Secret", Name: "a"}, Reached: true},
				{Action: dryrun.ActionTakeOver, ID: objectdiff.ID{Kind: "ConfigMap", Namespace: "shop", Name: "web\x1b[31m"}, From: "Deployment\nx", Reached: true, Fields: []dryrun.Field{
					{Change: objectdiff.Change{Path: "data.a", Before: "1", After: "2\x07"}, Managers: []string{"edit\x1b[0m"}},
					{Change: objectdiff.Change{Path: "data.b", After: strings.Repeat("long ", 40)}}, {Change: objectdiff.Change{Path: "data.c", Before: map[string]any{"x": int64(1)}}},
				}},
			}},
			{Name: "deploy", Changes: []dryrun.Change{{Action: dryrun.ActionReplace, ID: objectdiff.ID{Kind: "Job", Name: "migrate"}, Unverified: "it is deleted first"}}},
			{Name: "once", Reached: true, Unchanged: 1},
		},
		Cleanup:  []dryrun.Change{{Action: dryrun.ActionDelete, ID: objectdiff.ID{Kind: "Service", Name: "old"}, Reached: true}},
		Losses:   []dryrun.DataLoss{{Object: "Namespace shop", Message: "everything in it is deleted"}},
		Powers:   []dryrun.PrivilegeGain{{Role: "Role shop/web", Namespace: "shop", Verbs: []string{"get"}, APIGroups: []string{"", "apps"}, Resources: []string{"things"}, Names: []string{"one"}}},
		Warnings: []string{"careful\x1b[2J"},
		Summary:  dryrun.Summary{TakeOver: 1, Replace: 1, Delete: 1, Relabel: 1, Unchanged: 2},
	}
	golden.JSON(t, "plan", p)
	want := `package shop/web  revision 2 → 3
  package  web 1.0.0 → web 2.0.0
  image    r/web:1 → r/web:2

▸ config  1 relabelled, 2 unchanged
    < ConfigMap shop/web\u001b[31m  taken over from Deployment x
        ~ data.a  "1" → "2\u0007"                                               set by edit\u001b[0m
        + data.b  "long long long long long long long long long long long lon…
        - data.c  {"x":1}
▸ deploy    not reached
    ± Job migrate  deleted and recreated
        no dry run: it is deleted first
· once  1 unchanged

After the rollout
    - Service old

Data that might be lost
    ! Namespace shop  everything in it is deleted

Rights gained
    ! all subjects that it is bound to  get things,things.apps (one)  in shop  by Role shop/web
warning: careful\u001b[2J

Plan: 1 to take over, 1 to replace, 1 to relabel, 1 to delete, 2 unchanged
`
	require.Equal(t, want, Text(p, terminal.Plain()))
}

// printed returns the roles for a change of the installed package web to one without objects.
func printed(t *testing.T, cl *cluster.Cluster, from int64, flags ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &rbacCommand{Planner: Planner{Command: command.Command{Streams: clustertest.Streams(&stdout, &stderr)}}, account: "new", from: from}
	cmd := &cobra.Command{}
	c.Output.Add(cmd)
	require.NoError(t, cmd.ParseFlags(flags))
	p := &Planned{Loaded: &loader.Package{Manifest: &manifestsv1alpha1.PackageManifest{}}}
	require.NoError(t, c.find(t.Context(), cl, Wanted{source: "./x", folder: true, Name: cluster.Name{Name: "web"}}, p))
	p.Pkg = p.Before
	p.Client = cl.WithWatch
	err = c.print(t.Context(), cl, p)
	return stdout.String(), stderr.String(), err
}

// The roles replace the existing ones, so they cover the objects and accounts of all revisions that
// might own any.
func TestRolesOfRevisions(t *testing.T) {
	t.Parallel()
	all := clustertest.Revised(func(p *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) { p.Spec.ServiceAccountName = "old" })
	first := all[2].(*corev1alpha1.ObjectSet)
	first.Spec.ServiceAccountName = "old"
	first.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{clustertest.PhaseOf("deploy", `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"of-first"}}`)}
	for state, from := range map[corev1alpha1.ObjectSetLifecycleState]int64{
		corev1alpha1.ObjectSetLifecycleStateActive: 0, corev1alpha1.ObjectSetLifecycleStatePaused: 0, corev1alpha1.ObjectSetLifecycleStateArchived: 1, "": 0,
	} {
		first.Spec.LifecycleState = state
		out, _, err := printed(t, clustertest.FakeCluster(t, all...), from)
		if err != nil || !strings.Contains(out, "  - batch\n  resources:\n  - cronjobs\n  verbs:\n  - create\n") || !strings.Contains(out, " name: new\n") || !strings.Contains(out, " name: old\n") {
			t.Errorf("%s: %v\n%s", state, err, out)
		}
	}
	first.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	out, _, err := printed(t, clustertest.FakeCluster(t, all...), 0, "-o", "json")
	require.NoError(t, err)
	golden.JSON(t, "rbac", out)
	if out, _, err := printed(t, clustertest.FakeCluster(t, all...), 0); err != nil || strings.Contains(out, "cronjobs") || strings.Contains(out, "name: old") {
		t.Errorf("an archived revision: %v\n%s", err, out)
	}
	if _, _, err := printed(t, clustertest.FakeCluster(t, all...), 9); err == nil || !strings.Contains(err.Error(), "no revision 9") {
		t.Errorf("a revision that is not there: %v", err)
	}
}

// A ClusterPackage does not get the account for a Package of its name.
func TestRolesOfAnotherScope(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Available()))
	cl.Namespace = "shop"
	out, _, err := printed(t, cl, 0)
	if err == nil || out != "" || !strings.Contains(err.Error(), "write clusterpackage/web or package/web") {
		t.Errorf("%v\n%s", err, out)
	}
}
