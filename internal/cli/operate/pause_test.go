package operate_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// pausing returns the status of an unavailable package that is paused as its spec requires.
func pausing(pkg corev1alpha1.GenericPackage) corev1alpha1.PackageStatus {
	status := clustertest.Blocked()
	status.ObservedGeneration = pkg.GetGeneration()
	if pkg.PackageSpec().Paused {
		status.Conditions = append(status.Conditions, clustertest.Condition("Paused", "True", "Paused", ""))
		status.Conditions[len(status.Conditions)-1].ObservedGeneration = pkg.GetGeneration()
	}
	return status
}

// A package that is not available can be paused and resumed as well.
func TestPause(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) { pkg.Status = clustertest.Blocked() })...)
	clustertest.Manager(t, c, c.Target(corev1alpha1.ScopeNamespaced, "web"), pausing)
	read := func() corev1alpha1.GenericPackage {
		pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
		require.NoError(t, err)
		return pkg
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "pause", "package/web", "-m", "not today"); got != (clitest.Result{Code: 0, Out: "package shop/web is paused\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
	if pkg := read(); !pkg.PackageSpec().Paused || pkg.GetAnnotations()[corev1alpha1.PauseMessageAnnotation] != "not today" {
		t.Errorf("got %+v, %v", pkg.PackageSpec(), pkg.GetAnnotations())
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "unpause", "package", "web"); got != (clitest.Result{Code: 0, Out: "package shop/web is resumed\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
	if pkg := read(); pkg.PackageSpec().Paused || len(pkg.GetAnnotations()) > 0 {
		t.Errorf("got %+v, %v", pkg.PackageSpec(), pkg.GetAnnotations())
	}
}

func TestPauseAClusterPackage(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "store", Generation: 1}, Spec: corev1alpha1.PackageSpec{Image: "example.com/web:v1"}})
	target := c.Target(corev1alpha1.ScopeCluster, "store")
	clustertest.Manager(t, c, target, pausing)
	for _, step := range []struct {
		command, says string
		paused        bool
	}{{"pause", "clusterpackage store is paused\n", true}, {"unpause", "clusterpackage store is resumed\n", false}} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", step.command, "clusterpackage/store"); got != (clitest.Result{Code: 0, Out: step.says, Err: ""}) {
			t.Errorf("%s: %+v", step.command, got)
		}
		if pkg, err := c.Read(t.Context(), target); err != nil || pkg.PackageSpec().Paused != step.paused {
			t.Errorf("%s: %+v, %v", step.command, pkg, err)
		}
	}
}

func TestPauseErrors(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no manager":   {[]string{"pause", "web", "--timeout", "100ms"}, "was not noticed by a manager after 0.1s: is lockstep-manager running? The change stays"},
		"no name":      {[]string{"pause"}, "arguments invalid: NAME is missing"},
		"a deployment": {[]string{"unpause", "objectdeployment/web"}, `"objectdeployment" is not a kind of package: write package/web`},
		"no package":   {[]string{"pause", "package/nope"}, "there is no package shop/nope"},
		"bad timeout":  {[]string{"pause", "web", "--timeout", "0s"}, "--timeout must be positive"},
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", tc.args...); got.Code != 1 || !strings.Contains(got.Err, tc.want) {
			t.Errorf("%s: got %+v, want %q", name, got, tc.want)
		}
	}
}

func TestWarningWithoutAManager(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		renewed time.Duration
		args    []string
		want    string
	}{
		"running":       {2 * time.Second, []string{"status", "web"}, ""},
		"status":        {5 * time.Minute, []string{"status", "web"}, silent},
		"clustertree":   {5 * time.Minute, []string{"clustertree", "web"}, silent},
		"JSON":          {5 * time.Minute, []string{"status", "web", "-o", "json"}, ""},
		"another clock": {-time.Hour, []string{"status", "web"}, ""},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-tc.renewed)))
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, append(clustertest.Revised(nil), lease)...)), "", tc.args...)
		if got.Err != tc.want && tc.args[0] == "status" || tc.want != "" && !strings.HasPrefix(got.Err, tc.want) {
			t.Errorf("%s: got %q", name, got.Err)
		}
	}
}

const silent = "Warning: no manager has renewed its Lease for 5m, so this might be outdated: is lockstep-manager running?\n"

func TestPauseInterrupted(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"pause", "unpause"} {
		synctest.Test(t, func(t *testing.T) {
			c := clustertest.FakeCluster(t, clustertest.Revised(func(pkg *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) {
				pkg.Spec.Paused = command == "unpause"
				pkg.Status.ObservedGeneration = 0
			})...)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			var out, errOut bytes.Buffer
			code := cli.RunOn(ctx, []string{command, "web"}, clustertest.Streams(&out, &errOut), clustertest.DialTo(c))
			want := "Error: package shop/web: interrupted; the cluster continues\n"
			if code != 1 || errOut.String() != want {
				t.Errorf("%s: exit code %d, got %q", command, code, errOut.String())
			}
		})
	}
}

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
			require.Equal(t, tc.want, clitest.InvokeOn(t, clustertest.DialTo(c), "", append(tc.args, "--wait=false")...))
			now, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeCluster, "web"))
			require.NoError(t, err)
			if value := now.GetAnnotations()[corev1alpha1.RetryAnnotation]; (value != "") != tc.tried {
				t.Errorf("the annotation is %q", value)
			}
		})
	}
}
