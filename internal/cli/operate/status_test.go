package operate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Blocked()))
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "web")
	for _, want := range []string{"clusterpackage web\n", "  ✗ deploy  0/1  waiting for probes\n", "             phase deploy waits for:\n             Deployment shop/web: no replicas\n"} {
		require.Contains(t, got.Out, want)
	}
	if got.Code != 0 || got.Err != "" {
		t.Errorf("exit code %d, %s", got.Code, got.Err)
	}
	var report progress.Report
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "clpkg/web", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(got.Out), &report))
	if report.Summary != summary.Progressing || report.Blocking[0].Message != "no replicas" || report.Kind != "ClusterPackage" {
		t.Errorf("got %+v", report)
	}
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "web", "-o", "yaml")
	if !strings.Contains(got.Out, "\nkind: ClusterPackage\n") || !strings.Contains(got.Out, "\nsummary: Progressing\n") {
		t.Errorf("got %s", got.Out)
	}
	for arg, want := range map[string]string{
		"nope":         "Error: there is neither a package nope in namespace shop nor a clusterpackage of that name\n",
		"package/nope": "Error: there is no package shop/nope\n",
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", arg); got != (clitest.Result{Code: 1, Out: "", Err: want}) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

// status prints everything else if the revision in charge cannot be read.
func TestStatusOfAnUnreadableRevision(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(dep *corev1alpha1.ObjectDeployment, set *corev1alpha1.ObjectSet) *corev1alpha1.ObjectDeployment{
		"the deployment does not exist": func(*corev1alpha1.ObjectDeployment, *corev1alpha1.ObjectSet) *corev1alpha1.ObjectDeployment {
			return nil
		},
		"a slice does not exist": func(dep *corev1alpha1.ObjectDeployment, set *corev1alpha1.ObjectSet) *corev1alpha1.ObjectDeployment {
			set.Spec.Phases[0].Slices = []string{"gone"}
			return dep
		},
		"its objects are in Secrets": func(dep *corev1alpha1.ObjectDeployment, set *corev1alpha1.ObjectSet) *corev1alpha1.ObjectDeployment {
			set.Spec.Phases[0].SecretSlices = []string{"sealed"}
			return dep
		},
	} {
		objects := clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
			pkg.Status.Conditions = append(pkg.Status.Conditions, clustertest.Condition(corev1alpha1.ConditionRolledBack, metav1.ConditionTrue, "ProgressDeadlineExceeded", ""))
			pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Images: []corev1alpha1.PackageImage{{Image: "web:v2"}}}
		})
		one, two := objects[2].(*corev1alpha1.ObjectSet), objects[3].(*corev1alpha1.ObjectSet)
		one.Spec.LifecycleState, one.Spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, 3
		two.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
		if change(objects[1].(*corev1alpha1.ObjectDeployment), one) == nil {
			objects = slices.Delete(objects, 1, 2)
		}
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, objects...)), "", "status", "web", "--objects")
		if got.Code != 0 || !strings.Contains(got.Out, "  web:v2  no digest") || !strings.HasPrefix(got.Err, "note: the objects are not shown: ") {
			t.Errorf("%s: %d\n%s%s", reason, got.Code, got.Out, got.Err)
		}
	}
}

// The images belong to the revision in charge, even if another one was loaded last.
func TestStatusAfterARollback(t *testing.T) {
	t.Parallel()
	for _, rolledBack := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		objects := clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
			pkg.Status.Conditions = append(pkg.Status.Conditions, clustertest.Condition(corev1alpha1.ConditionRolledBack, rolledBack, "ProgressDeadlineExceeded", ""))
			pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Images: []corev1alpha1.PackageImage{{Image: "web:v2"}}}
		})
		one, two := objects[2].(*corev1alpha1.ObjectSet), objects[3].(*corev1alpha1.ObjectSet)
		one.Spec.LifecycleState, one.Spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, 3
		two.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, objects...)), "", "status", "web")
		want := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "  web:v1  no digest", metav1.ConditionFalse: "  web:v2  no digest"}[rolledBack]
		if !strings.Contains(got.Out, want) || strings.Count(got.Out, "no digest") != 1 {
			t.Errorf("rolled back %s: %q is missing in\n%s%s", rolledBack, want, got.Out, got.Err)
		}
	}
}

func TestExplainArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"unknown flag: --config":      {"package/web", "--config", "x"},
		`unknown output format "xml"`: {"web", "-o", "xml"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"explain"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	needed := clustertest.FakeCluster(t, installedWith("shop", "front", "db"), installedWith("shop", "front.db"), installedWith("", "certs"))
	golden.JSON(t, "deps", clitest.InvokeOn(t, clustertest.DialTo(needed), "", "deps", "-o", "json", "front").Out)
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Blocked()))
	golden.JSON(t, "status", clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "web", "-o", "json").Out)
	golden.JSON(t, "explain", diagnose.Diagnosis{
		Kind: "Package", Namespace: "shop", Name: "web", Summary: summary.Stalled, Phase: "deploy", Object: "Deployment shop/web", Reason: diagnose.ReasonQuota,
		Cause: "a quota", Remedy: "raise it", Chain: []diagnose.Link{{Object: "Deployment shop/web", State: "waits", Message: "no replicas", Depth: 1}},
	})
}

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

// The dependents of a package are named before it is deleted. The annotation is set before the
// deletion, because the manager reads it when the deletion starts.
func TestDeleteRequired(t *testing.T) {
	t.Parallel()
	packages := func() []client.Object {
		return []client.Object{installedWith("shop", "front", "db"), installedWith("shop", "front.db")}
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
}
