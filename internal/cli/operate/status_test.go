package operate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Blocked()))
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "web")
	for _, want := range []string{"clusterpackage web\n", "  ✗ deploy  0/1  waiting for probes\n", "      Deployment.apps shop/web\n        no replicas\n"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing in\n%s", want, got.Out)
		}
	}
	if got.Code != 0 || got.Err != "" {
		t.Errorf("exit code %d, %s", got.Code, got.Err)
	}
	var report progress.Report
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "clpkg/web", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(got.Out), &report))
	if report.Summary != progress.SummaryProgressing || report.Blocking[0].Message != "no replicas" || report.Kind != "ClusterPackage" {
		t.Errorf("got %+v", report)
	}
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "status", "web", "-o", "yaml")
	if !strings.HasPrefix(got.Out, "kind: ClusterPackage\nname: web\nsummary: Progressing\n") {
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
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, objects...)), "", "status", "web")
		if got.Code != 0 || !strings.Contains(got.Out, "  web:v2  no digest") {
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
