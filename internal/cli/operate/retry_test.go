package operate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// An installation that changes nothing retries only a package that fails. The command retry always
// retries.
func TestRetry(t *testing.T) {
	t.Parallel()
	noImage := corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{clustertest.Condition("Unpacked", "False", "ImagePullBackOff", "not found")}}
	for name, tc := range map[string]struct {
		args   []string
		status corev1alpha1.PackageStatus
		paused bool
		want   clitest.Result
		tried  bool
	}{
		"install of a failing package": {
			args: []string{"install", "example.com/web:v1", "--cluster"}, status: noImage, tried: true,
			want: clitest.Result{Code: 0, Out: "clusterpackage web is already up to date; failed steps are retried\n", Err: ""},
		},
		"install of another image in place of a failing package": {
			args: []string{"install", "example.com/web:v2", "--cluster"}, status: noImage, tried: true,
			want: clitest.Result{Code: 0, Out: "clusterpackage web changed: image example.com/web:v1 → example.com/web:v2\n", Err: ""},
		},
		"install while it waits":       {args: []string{"install", "example.com/web:v1", "--cluster"}, status: clustertest.Blocked(), tried: true, want: clitest.Result{Code: 0, Out: "clusterpackage web is already up to date; failed steps are retried\n", Err: ""}},
		"install of a working package": {args: []string{"install", "example.com/web:v1", "--cluster"}, status: clustertest.Available(), want: clitest.Result{Code: 0, Out: "clusterpackage web is already up to date\n", Err: ""}},
		"retry of a working package":   {args: []string{"retry", "web"}, status: clustertest.Available(), tried: true, want: clitest.Result{Code: 0, Out: "clusterpackage web is being retried\n", Err: ""}},
		"retry while it is paused":     {args: []string{"retry", "web"}, status: clustertest.Blocked(), paused: true, want: clitest.Result{Code: 1, Out: "", Err: "Error: clusterpackage web is paused, so it is not retried. To resume it: kubectl package unpause clusterpackage/web\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := clustertest.Installed(tc.status)
			pkg.Spec.Paused = tc.paused
			c := clustertest.FakeCluster(t, pkg)
			if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append(tc.args, "--wait=false")...); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			now, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeCluster, "web"))
			require.NoError(t, err)
			if value := now.GetAnnotations()[corev1alpha1.RetryAnnotation]; (value != "") != tc.tried {
				t.Errorf("the annotation is %q", value)
			}
		})
	}
}
