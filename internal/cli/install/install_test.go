package install_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	invalid := corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{clustertest.Condition("Invalid", "True", "LoadError", "one\ntwo")}}
	for name, tc := range map[string]struct {
		args     []string
		target   progress.Target
		statuses []corev1alpha1.PackageStatus
		want     clitest.Result
	}{
		"a package": {
			args: []string{"example.com/web:v1"}, target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"},
			statuses: []corev1alpha1.PackageStatus{clustertest.Blocked(), clustertest.Available()},
			want:     clitest.Result{Code: 0, Out: "package shop/web created\npackage shop/web is available: web 1.2.0, revision 1, after T\n", Err: ""},
		},
		"a cluster package of another name": {
			args: []string{"example.com/web:v1", "store", "--cluster"}, target: progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "store"},
			statuses: []corev1alpha1.PackageStatus{clustertest.Available()},
			want:     clitest.Result{Code: 0, Out: "clusterpackage store created\nclusterpackage store is available: web 1.2.0, revision 1, after T\n", Err: ""},
		},
		"timeout": {
			args: []string{"example.com/web:v1", "clusterpackage/store", "--timeout", "1s"}, target: progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "store"},
			statuses: []corev1alpha1.PackageStatus{clustertest.Blocked()},
			want: clitest.Result{Code: 1, Out: "clusterpackage store created\n",
				Err: "Error: clusterpackage store is not available after T: phase deploy waits for:\n  Deployment shop/web: no replicas\nSee: kubectl package status clusterpackage/store\n"},
		},
		"invalid": {
			args: []string{"example.com/web:v1", "-n", "other"}, target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "other", Name: "web"},
			statuses: []corev1alpha1.PackageStatus{invalid},
			want: clitest.Result{Code: 1, Out: "package other/web created\n",
				Err: "Error: package other/web is not available: the package cannot be installed as it is:\n  one\n  two\n  Correct it in the package and push it again, then: kubectl package retry package/web -n other\nSee: kubectl package status package/web -n other\n"},
		},
		"without waiting": {
			args: []string{"example.com/web:v1", "--wait=false"}, target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"},
			want: clitest.Result{Code: 0, Out: "package shop/web created\n", Err: ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.FakeCluster(t)
			if len(tc.statuses) > 0 {
				clustertest.Manager(t, c, tc.target, clustertest.InTurn(tc.statuses...))
			}
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"install"}, tc.args...)...)
			got.Out = clitest.Times.ReplaceAllString(got.Out, " T")
			_, got.Err = splitProgress(got.Err)
			got.Err = clitest.Times.ReplaceAllString(got.Err, " T")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(clitest.Result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// splitProgress divides standard error into the lines of progress and the rest.
func splitProgress(text string) (lines, rest string) {
	for line := range strings.Lines(text) {
		if rest == "" && clitest.Times.MatchString(line) && !strings.HasPrefix(line, "Error") {
			lines += line
		} else {
			rest += line
		}
	}
	return lines, rest
}

// An output that is not a terminal gets plain lines, one for each transition, with the time first.
func TestInstallProgress(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t)
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}
	clustertest.Manager(t, c, target, clustertest.InTurn(clustertest.Available()))
	lines, _ := splitProgress(clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "example.com/web:v1").Err)
	want := " T  unpacked example.com/web:v1: web 1.2.0, sha256:abc\n T  revision 1: 1 phase, 1 object\n T  phase deploy: ready, 1/1\n"
	require.Equal(t, want, clitest.Times.ReplaceAllString(lines, " T"))
	if strings.Contains(lines, "\x1b") {
		t.Error("escape sequences outside of a terminal")
	}
}

// The cause of a failure is in the error, and not in a line of progress before.
func TestFailureIsPrintedOnce(t *testing.T) {
	t.Parallel()
	const reason = "no good: example.com/web:v1"
	for name, conditions := range map[string][]metav1.Condition{
		"invalid": {clustertest.Condition("Invalid", "True", "LoadError", reason)},
		"pull":    {clustertest.Condition("Unpacked", "False", "ImagePullBackOff", reason), clustertest.Condition("Stalled", "True", "ImagePullBackOff", reason)},
		"stalled": {clustertest.Unpacked, clustertest.Condition("Stalled", "True", "CollisionDetected", reason)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := clustertest.Installed(corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: conditions})
			got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, pkg)), "", "rollout", "status", "web")
			if got.Code != 1 || strings.Count(got.Err, reason) != 1 || !strings.Contains(got.Err, "Error: ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestInstallChanges(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte("color: blue\n"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		what string
		want corev1alpha1.PackageSpec
	}{
		"nothing": {[]string{"example.com/web:v1"}, "is already up to date",
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: clustertest.Raw(`{"color":"red","size":1}`), Paused: true}},
		"image": {[]string{"example.com/web:v2"}, "changed: image example.com/web:v1 → example.com/web:v2",
			corev1alpha1.PackageSpec{Image: "example.com/web:v2", Component: "front", Config: clustertest.Raw(`{"color":"red","size":1}`), Paused: true}},
		"config is replaced, not merged": {[]string{"example.com/web:v1", "--config", config}, "changed: configuration",
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: clustertest.Raw(`{"color":"blue"}`), Paused: true}},
		"component": {[]string{"example.com/web:v1", "--component="}, `changed: component "front" → ""`,
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Config: clustertest.Raw(`{"color":"red","size":1}`), Paused: true}},
		"config of the same value": {[]string{"example.com/web:v1", "--config", "-"}, "is already up to date",
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: clustertest.Raw(`{"color":"red","size":1}`), Paused: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 1}}
			old.Spec = corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: clustertest.Raw(`{"color":"red","size":1}`), Paused: true}
			c := clustertest.FakeCluster(t, old)
			got := clitest.InvokeOn(t, clustertest.DialTo(c), "size: 1\ncolor: red\n", append([]string{"install", "--wait=false"}, tc.args...)...)
			require.Equal(t, (clitest.Result{Code: 0, Out: "package shop/web " + tc.what + "\n", Err: ""}), got)
			pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
			require.NoError(t, err)
			require.Equal(t, tc.want, *pkg.PackageSpec())
		})
	}
}

func TestInstallArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"no image":         {nil, "", "arguments invalid: PACKAGE|IMAGE is missing"},
		"empty image":      {[]string{""}, "", "arguments invalid: PACKAGE|IMAGE is missing"},
		"bad image":        {[]string{"a b"}, "", `arguments invalid: PACKAGE "a b" is neither an image nor the name of a package`},
		"bad name":         {[]string{"example.com/b:v1", "B"}, "", `arguments invalid: NAME "B" cannot be the name of a package`},
		"bad kind":         {[]string{"example.com/b:v1", "pod/b"}, "", `arguments invalid: "pod" is not a kind of package`},
		"contradiction":    {[]string{"example.com/b:v1", "package/b", "--cluster"}, "", "arguments invalid: package/b and --cluster contradict each other"},
		"bad timeout":      {[]string{"example.com/b:v1", "--timeout", "-1s"}, "", "arguments invalid: --timeout must be positive"},
		"config: inline":   {[]string{"example.com/b:v1", "--config", `{"a": 1}`}, "", "--config takes a file, or - for standard input"},
		"config: no file":  {[]string{"example.com/b:v1", "--config", "/nope"}, "", "read the configuration: open /nope"},
		"config: a list":   {[]string{"example.com/b:v1", "--config", "-"}, "- a", "the configuration in standard input is not a mapping"},
		"config: two":      {[]string{"example.com/b:v1", "--config", "-"}, "a: 1\n---\nb: 1", "has 2 documents"},
		"config: broken":   {[]string{"example.com/b:v1", "--config", "-"}, "a: [", "the configuration cannot be read: Invalid YAML in standard input"},
		"config: twice":    {[]string{"example.com/b:v1", "--config", "-"}, "a: 1\na: 2", "the configuration cannot be read"},
		"config: too long": {[]string{"example.com/b:v1", "--config", "-"}, "a: " + strings.Repeat("x", 300<<10), "bytes; the limit is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Invoke(t, tc.stdin, append([]string{"install"}, tc.args...)...)
			if got.Code != 1 || !strings.HasPrefix(got.Err, "Error: ") || !strings.Contains(got.Err, tc.want) || got.Out != "" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Available()))
	target := c.Target(corev1alpha1.ScopeCluster, "web")
	leaving := clustertest.Available()
	leaving.Phases[0].State = "TearingDown"
	leaving.Blocking = []corev1alpha1.BlockingObject{{Kind: "ConfigMap", Namespace: "shop", Name: "a", Phase: "deploy", Message: "is held by the finalizer x"}}
	clustertest.Manager(t, c, target, clustertest.InTurn(leaving))
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "delete", "web", "--timeout", "1s")
	_, got.Err = splitProgress(got.Err)
	got.Err = clitest.Times.ReplaceAllString(got.Err, " T")
	want := clitest.Result{Code: 1, Out: "", Err: "Error: clusterpackage web still exists after T: phase deploy cannot be torn down yet because of:\n" +
		"  ConfigMap shop/a: is held by the finalizer x\nSee: kubectl package status clusterpackage/web\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	c.WithWatch.(*clustertest.Listing).OnWatch = sync.OnceFunc(func() {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the previous manager might still be writing
			pkg, err := c.Read(t.Context(), target)
			if err != nil {
				return err
			}
			pkg.SetFinalizers(nil)
			return c.Update(t.Context(), pkg.(client.Object))
		})
		if err != nil {
			t.Error(err)
		}
	})
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "delete", "web")
	if out := clitest.Times.ReplaceAllString(got.Out, " T"); got.Code != 0 || out != "clusterpackage web is deleted, after T\n" {
		t.Errorf("got %+v", got)
	}
	for _, args := range [][]string{{"delete", "web", "--cascade", "foreground"}, {"delete"}, {"delete", "a/b/c"}, {"delete", "a", "--timeout", "0s"}} {
		if got := clitest.Invoke(t, "", args...); got.Code != 1 || !strings.HasPrefix(got.Err, "Error: arguments invalid: ") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

func TestDeleteOrphan(t *testing.T) {
	t.Parallel()
	pkg := clustertest.Installed(clustertest.Available())
	pkg.Finalizers = nil
	got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, pkg)), "", "delete", "clusterpackage/web", "--cascade=orphan")
	if out := clitest.Times.ReplaceAllString(got.Out, " T"); got.Code != 0 || out != "clusterpackage web is deleted, after T; its objects stay\n" {
		t.Errorf("got %+v", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestInterrupt(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var errOut strings.Builder
	// The first line is printed between the creation and the wait.
	out := writerFunc(func(p []byte) (int, error) {
		time.AfterFunc(100*time.Millisecond, interrupt)
		return len(p), nil
	})
	code := cli.RunOn(ctx, []string{"install", "example.com/web:v1"}, clustertest.Streams(out, &errOut), clustertest.DialTo(c))
	want := "Error: package shop/web is not available: interrupted; it continues in the cluster\nSee: kubectl package status package/web -n shop\n"
	if code != 1 || errOut.String() != want {
		t.Errorf("exit code %d, got %q", code, errOut.String())
	}
}

func TestUninstallDeletes(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Following(">=1", "1.2.0"))
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "uninstall", "web", "--wait=false", "--yes", "-n", "shop"); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}

// Without a terminal, --yes is needed.
func TestInstallOfAnotherPackage(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Available()))
	args := []string{"install", "docker.io/web", "--cluster", "--wait=false"}
	want := clitest.Result{Code: 1, Out: "", Err: "clusterpackage web is installed from example.com/web:v1 and would change to another repository, index.docker.io/library/web:latest\nError: nothing was changed: confirm it with --yes\n"}
	require.Equal(t, want, clitest.InvokeOn(t, clustertest.DialTo(c), "", args...))
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append(args, "--yes")...); got != (clitest.Result{Code: 0, Out: "clusterpackage web changed: image example.com/web:v1 → docker.io/web\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
}

// Other owners' values are not overwritten, and values written for a refused package are deleted
// again.
func TestValuesOfOthersStay(t *testing.T) {
	t.Parallel()
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-values"}, Data: map[string]string{"values.yaml": "mine"}}
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0"), mine)
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "shop.example.com", "web", "--values", clitest.ValuesFile(t, "title: a"))
	if got.Code != 1 || !strings.Contains(got.Err, "ConfigMap shop/web-values exists and does not hold values of kubectl package") {
		t.Errorf("%+v", got)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil || mine.Data["values.yaml"] != "mine" {
		t.Errorf("%v %v", err, mine.Data)
	}
}
