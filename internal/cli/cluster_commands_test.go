package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

// manager stands for the engine: it writes statuses of a package until the test ends,
// because the fake API server, unlike a real one, loses changes between a list and its
// watch.
func manager(t *testing.T, c *cluster.Cluster, target progress.Target, next func(corev1alpha1.GenericPackage) corev1alpha1.PackageStatus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if pkg, err := c.Read(ctx, target); err == nil {
				*pkg.PackageStatus() = next(pkg)
				_ = c.Status().Update(ctx, pkg.(client.Object))
			}
		}, 10*time.Millisecond)
	})
}

// inTurn returns one status after the other, and then the last one.
func inTurn(statuses ...corev1alpha1.PackageStatus) func(corev1alpha1.GenericPackage) corev1alpha1.PackageStatus {
	i := -1
	return func(corev1alpha1.GenericPackage) corev1alpha1.PackageStatus {
		i = min(i+1, len(statuses)-1)
		return statuses[i]
	}
}

func condition(typ string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}
}

var unpacked = condition("Unpacked", "True", "UnpackSuccess", "Loaded it.")

func available() corev1alpha1.PackageStatus {
	return corev1alpha1.PackageStatus{
		ObservedGeneration: 1, Revision: 1,
		Conditions: []metav1.Condition{unpacked, condition("Available", "True", "Available", ""), condition("Ready", "True", "Idle", "")},
		Resolved:   &corev1alpha1.ResolvedPackage{PackageName: "web", Version: "1.2.0", Digest: "sha256:abc"},
		Phases:     []corev1alpha1.PhaseStatus{{Name: "deploy", State: "Ready", Ready: 1, Total: 1}},
	}
}

func blocked() corev1alpha1.PackageStatus {
	s := available()
	s.Conditions = []metav1.Condition{unpacked, condition("Available", "False", "ObjectSetUnready", "not yet")}
	s.Phases[0].State, s.Phases[0].Ready = "Probing", 0
	s.Blocking = []corev1alpha1.BlockingObject{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Phase: "deploy", Message: "no replicas"}}
	return s
}

// times are replaced, because they differ from run to run.
var times = regexp.MustCompile(` *[0-9.]+s\b`)

func TestInstall(t *testing.T) {
	t.Parallel()
	invalid := corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{condition("Invalid", "True", "LoadError", "one\ntwo")}}
	for name, tc := range map[string]struct {
		args     []string
		target   progress.Target
		statuses []corev1alpha1.PackageStatus
		want     result
	}{
		"a package": {
			args: []string{"example.com/web:v1"}, target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"},
			statuses: []corev1alpha1.PackageStatus{blocked(), available()},
			want:     result{0, "package shop/web created\npackage shop/web is available: web 1.2.0, revision 1, after T\n", ""},
		},
		"a cluster package of another name": {
			args: []string{"example.com/web:v1", "store", "--cluster"}, target: progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "store"},
			statuses: []corev1alpha1.PackageStatus{available()},
			want:     result{0, "clusterpackage store created\nclusterpackage store is available: web 1.2.0, revision 1, after T\n", ""},
		},
		"timeout": {
			args: []string{"example.com/web:v1", "clusterpackage/store", "--timeout", "1s"}, target: progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "store"},
			statuses: []corev1alpha1.PackageStatus{blocked()},
			want: result{1, "clusterpackage store created\n",
				"Error: clusterpackage store is not available after T: phase deploy waits for:\n  Deployment shop/web: no replicas\nSee: kubectl package status clusterpackage/store\n"},
		},
		"invalid": {
			args: []string{"example.com/web:v1", "-n", "other"}, target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "other", Name: "web"},
			statuses: []corev1alpha1.PackageStatus{invalid},
			want: result{1, "package other/web created\n",
				"Error: package other/web is not available: the package cannot be installed as it is:\n  one\n  two\nSee: kubectl package status package/web -n other\n"},
		},
		"without waiting": {
			args: []string{"example.com/web:v1", "--wait=false"}, target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"},
			want: result{0, "package shop/web created\n", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t)
			if len(tc.statuses) > 0 {
				manager(t, c, tc.target, inTurn(tc.statuses...))
			}
			got := invokeOn(t, dialTo(c), "", append([]string{"install"}, tc.args...)...)
			got.out = times.ReplaceAllString(got.out, " T")
			_, got.err = splitProgress(got.err)
			got.err = times.ReplaceAllString(got.err, " T")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// splitProgress divides standard error into the lines of progress and the rest.
func splitProgress(text string) (lines, rest string) {
	for line := range strings.Lines(text) {
		if rest == "" && times.MatchString(line) && !strings.HasPrefix(line, "Error") {
			lines += line
		} else {
			rest += line
		}
	}
	return lines, rest
}

// What is not a terminal gets plain lines, one for each transition, with the time
// first.
func TestInstallProgress(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}
	manager(t, c, target, inTurn(available()))
	lines, _ := splitProgress(invokeOn(t, dialTo(c), "", "install", "example.com/web:v1").err)
	want := " T  unpacked example.com/web:v1: web 1.2.0, sha256:abc\n T  revision 1: 1 phase, 1 object\n T  phase deploy: ready, 1/1\n"
	if diff := cmp.Diff(want, times.ReplaceAllString(lines, " T")); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(lines, "\x1b") {
		t.Error("escape sequences outside of a terminal")
	}
}

// What makes the command fail is in its error, and not in a line of progress before.
func TestFailureIsPrintedOnce(t *testing.T) {
	t.Parallel()
	const reason = "no good: example.com/web:v1"
	for name, conditions := range map[string][]metav1.Condition{
		"invalid": {condition("Invalid", "True", "LoadError", reason)},
		"pull":    {condition("Unpacked", "False", "ImagePullBackOff", reason), condition("Stalled", "True", "ImagePullBackOff", reason)},
		"stalled": {unpacked, condition("Stalled", "True", "CollisionDetected", reason)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := installed(corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: conditions})
			got := invokeOn(t, dialTo(fakeCluster(t, pkg)), "", "rollout", "status", "web")
			if got.code != 1 || strings.Count(got.err, reason) != 1 || !strings.Contains(got.err, "Error: ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestInstallChanges(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("color: blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		what string
		want corev1alpha1.PackageSpec
	}{
		"nothing": {
			[]string{"example.com/web:v1"}, "is as wanted already",
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: raw(`{"color":"red","size":1}`), Paused: true},
		},
		"image": {
			[]string{"example.com/web:v2"}, "changed: image example.com/web:v1 → example.com/web:v2",
			corev1alpha1.PackageSpec{Image: "example.com/web:v2", Component: "front", Config: raw(`{"color":"red","size":1}`), Paused: true},
		},
		"config is replaced, not merged": {
			[]string{"example.com/web:v1", "--config", config}, "changed: configuration",
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: raw(`{"color":"blue"}`), Paused: true},
		},
		"component": {
			[]string{"example.com/web:v1", "--component="}, `changed: component "front" → ""`,
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Config: raw(`{"color":"red","size":1}`), Paused: true},
		},
		"config of the same value": {
			[]string{"example.com/web:v1", "--config", "-"}, "is as wanted already",
			corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: raw(`{"color":"red","size":1}`), Paused: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 1}}
			old.Spec = corev1alpha1.PackageSpec{Image: "example.com/web:v1", Component: "front", Config: raw(`{"color":"red","size":1}`), Paused: true}
			c := fakeCluster(t, old)
			got := invokeOn(t, dialTo(c), "size: 1\ncolor: red\n", append([]string{"install", "--wait=false"}, tc.args...)...)
			if want := (result{0, "package shop/web " + tc.what + "\n", ""}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *pkg.PackageSpec()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An installation that changes nothing retries a package that fails, and leaves others
// alone; retry always does.
func TestRetry(t *testing.T) {
	t.Parallel()
	noImage := corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{condition("Unpacked", "False", "ImagePullBackOff", "not found")}}
	for name, tc := range map[string]struct {
		args   []string
		status corev1alpha1.PackageStatus
		paused bool
		want   result
		tried  bool
	}{
		"install of what fails": {
			args: []string{"install", "example.com/web:v1", "--cluster"}, status: noImage, tried: true,
			want: result{0, "clusterpackage web is as wanted already; what has failed is tried again\n", ""},
		},
		"install of another image in place of what fails": {
			args: []string{"install", "example.com/web:v2", "--cluster"}, status: noImage, tried: true,
			want: result{0, "clusterpackage web changed: image example.com/web:v1 → example.com/web:v2\n", ""},
		},
		"install of what waits":   {args: []string{"install", "example.com/web:v1", "--cluster"}, status: blocked(), tried: true, want: result{0, "clusterpackage web is as wanted already; what has failed is tried again\n", ""}},
		"install of what works":   {args: []string{"install", "example.com/web:v1", "--cluster"}, status: available(), want: result{0, "clusterpackage web is as wanted already\n", ""}},
		"retry of what works":     {args: []string{"retry", "web"}, status: available(), tried: true, want: result{0, "clusterpackage web is tried again\n", ""}},
		"retry of what is paused": {args: []string{"retry", "web"}, status: blocked(), paused: true, want: result{1, "", "Error: clusterpackage web is paused, so nothing of it is tried. Let it go on: kubectl package unpause clusterpackage/web\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := installed(tc.status)
			pkg.Spec.Paused = tc.paused
			c := fakeCluster(t, pkg)
			if got := invokeOn(t, dialTo(c), "", append(tc.args, "--wait=false")...); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			now, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeCluster, "web"))
			if err != nil {
				t.Fatal(err)
			}
			if value := now.GetAnnotations()[corev1alpha1.RetryAnnotation]; (value != "") != tc.tried {
				t.Errorf("the annotation is %q", value)
			}
		})
	}
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

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
		"bad name":         {[]string{"a/b:v1", "B"}, "", `arguments invalid: NAME "B" cannot be the name of a package`},
		"bad kind":         {[]string{"a/b:v1", "pod/b"}, "", `arguments invalid: "pod" is not a kind of package`},
		"contradiction":    {[]string{"a/b:v1", "package/b", "--cluster"}, "", "arguments invalid: package/b and --cluster contradict each other"},
		"bad timeout":      {[]string{"a/b:v1", "--timeout", "-1s"}, "", "arguments invalid: --timeout must be positive"},
		"config: inline":   {[]string{"a/b:v1", "--config", `{"a": 1}`}, "", "--config takes a file, or - for standard input"},
		"config: no file":  {[]string{"a/b:v1", "--config", "/nope"}, "", "read the configuration: open /nope"},
		"config: a list":   {[]string{"a/b:v1", "--config", "-"}, "- a", "the configuration in standard input is not a mapping"},
		"config: two":      {[]string{"a/b:v1", "--config", "-"}, "a: 1\n---\nb: 1", "has 2 documents"},
		"config: broken":   {[]string{"a/b:v1", "--config", "-"}, "a: [", "the configuration cannot be read: Invalid YAML in standard input"},
		"config: twice":    {[]string{"a/b:v1", "--config", "-"}, "a: 1\na: 2", "the configuration cannot be read"},
		"config: too long": {[]string{"a/b:v1", "--config", "-"}, "a: " + strings.Repeat("x", 300<<10), "bytes; the limit is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invoke(t, tc.stdin, append([]string{"install"}, tc.args...)...)
			if got.code != 1 || !strings.HasPrefix(got.err, "Error: ") || !strings.Contains(got.err, tc.want) || got.out != "" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func installed(status corev1alpha1.PackageStatus) *corev1alpha1.ClusterPackage {
	pkg := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Generation: 1, Finalizers: []string{"package-operator.run/metrics"}}}
	pkg.Spec.Image, pkg.Status = "example.com/web:v1", status
	return pkg
}

func TestStatus(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, installed(blocked()))
	got := invokeOn(t, dialTo(c), "", "status", "web")
	for _, want := range []string{"clusterpackage web\n", "  ✗ deploy  0/1  waiting for probes\n", "      Deployment.apps shop/web\n        no replicas\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in\n%s", want, got.out)
		}
	}
	if got.code != 0 || got.err != "" {
		t.Errorf("exit code %d, %s", got.code, got.err)
	}
	var report progress.Report
	got = invokeOn(t, dialTo(c), "", "status", "clpkg/web", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Summary != progress.SummaryProgressing || report.Blocking[0].Message != "no replicas" || report.Kind != "ClusterPackage" {
		t.Errorf("got %+v", report)
	}
	got = invokeOn(t, dialTo(c), "", "status", "web", "-o", "yaml")
	if !strings.HasPrefix(got.out, "kind: ClusterPackage\nname: web\nsummary: Progressing\n") {
		t.Errorf("got %s", got.out)
	}
	for arg, want := range map[string]string{
		"nope":         "Error: there is neither a package nope in namespace shop nor a clusterpackage of that name\n",
		"package/nope": "Error: there is no package shop/nope\n",
	} {
		if got := invokeOn(t, dialTo(c), "", "status", arg); got != (result{1, "", want}) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, installed(available()))
	target := c.Target(corev1alpha1.ScopeCluster, "web")
	leaving := available()
	leaving.Phases[0].State = "TearingDown"
	leaving.Blocking = []corev1alpha1.BlockingObject{{Kind: "ConfigMap", Namespace: "shop", Name: "a", Phase: "deploy", Message: "is held by the finalizer x"}}
	manager(t, c, target, inTurn(leaving))
	got := invokeOn(t, dialTo(c), "", "delete", "web", "--timeout", "1s")
	_, got.err = splitProgress(got.err)
	got.err = times.ReplaceAllString(got.err, " T")
	want := result{1, "", "Error: clusterpackage web is not gone after T: phase deploy cannot be torn down yet because of:\n" +
		"  ConfigMap shop/a: is held by the finalizer x\nSee: kubectl package status clusterpackage/web\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	c.WithWatch.(*listing).onWatch = sync.OnceFunc(func() {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the manager of before may still be writing
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
	got = invokeOn(t, dialTo(c), "", "delete", "web")
	if out := times.ReplaceAllString(got.out, " T"); got.code != 0 || out != "clusterpackage web is deleted, after T\n" {
		t.Errorf("got %+v", got)
	}
	for _, args := range [][]string{{"delete", "web", "--cascade", "foreground"}, {"delete"}, {"delete", "a/b/c"}, {"delete", "a", "--timeout", "0s"}} {
		if got := invoke(t, "", args...); got.code != 1 || !strings.HasPrefix(got.err, "Error: arguments invalid: ") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

func TestDeleteOrphan(t *testing.T) {
	t.Parallel()
	pkg := installed(available())
	pkg.Finalizers = nil
	got := invokeOn(t, dialTo(fakeCluster(t, pkg)), "", "delete", "clusterpackage/web", "--cascade=orphan")
	if out := times.ReplaceAllString(got.out, " T"); got.code != 0 || out != "clusterpackage web is deleted, after T; its objects stay\n" {
		t.Errorf("got %+v", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestInterrupt(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var errOut strings.Builder
	// The first line is printed between the creation and the wait.
	out := writerFunc(func(p []byte) (int, error) {
		time.AfterFunc(100*time.Millisecond, interrupt)
		return len(p), nil
	})
	code := run(ctx, []string{"install", "example.com/web:v1"}, streams(out, &errOut), dialTo(c))
	want := "Error: package shop/web is not available: interrupted; the cluster goes on with it\nSee: kubectl package status package/web -n shop\n"
	if code != 1 || errOut.String() != want {
		t.Errorf("exit code %d, got %q", code, errOut.String())
	}
}

func TestUnreachable(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nope")
	t.Setenv("KUBECONFIG", missing)
	t.Setenv("HOME", t.TempDir())
	got := invokeOn(t, cluster.Connect, "", "status", "a", "--server", "https://127.0.0.1:1")
	if got.code != 1 || !strings.Contains(got.err, "the cluster at https://127.0.0.1:1 cannot be reached: ") {
		t.Errorf("got %+v", got)
	}
	got = invokeOn(t, cluster.Connect, "", "status", "a")
	if want := ": no kubeconfig was found at KUBECONFIG=" + missing + ". Set it to an existing file, or set --kubeconfig\n"; got.code != 1 ||
		!strings.HasSuffix(got.err, want) || strings.Contains(got.err, "localhost") {
		t.Errorf("got %+v", got)
	}
	got = invokeOn(t, cluster.Connect, "", "status", "a", "--kubeconfig", "/nope")
	if got.code != 1 || got.err != "Error: the kubeconfig cannot be read: stat /nope: no such file or directory. Check --kubeconfig and KUBECONFIG\n" {
		t.Errorf("got %+v", got)
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	if got := invoke(t, ""); got.code != 0 || !strings.Contains(got.out, "kubectl package [command]") {
		t.Errorf("got %+v", got)
	}
	if got := invoke(t, "", "--version"); got.code != 0 || !strings.HasPrefix(got.out, "kubectl-package ") {
		t.Errorf("got %+v", got)
	}
	if got := invoke(t, "", "bogus"); got != (result{1, "", "Error: arguments invalid: unknown command \"bogus\". See: kubectl package --help\n"}) {
		t.Errorf("got %+v", got)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	got := invokeOn(t, dialTo(fakeCluster(t, installed(available()))), "", "__complete", "status", "w")
	if !strings.HasPrefix(got.out, "web\n:4\n") {
		t.Errorf("got %+v", got)
	}
}
