package install_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func TestList(t *testing.T) {
	t.Parallel()
	web := clustertest.Following(">=1", "1.2.0")
	web.Status.Resolved.CatalogName = "shop.example.com"
	web.Status.CurrentVersion, web.Status.Resolved.Version = "1.2.0", "2.0.0" // which is not in charge
	image := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "cache"}}
	image.Spec.Image = "registry.example.com/cache:v1"
	certs := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "certs"}}
	certs.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "certs.example.com"}
	certs.Status.Conditions = []metav1.Condition{clustertest.Condition("Paused", "True", "Paused", "Paused.")}
	c := clustertest.FakeCluster(t, web, image, certs)
	for _, test := range []struct {
		args []string
		want []string
		not  string
	}{
		{[]string{"list"}, []string{
			"NAMESPACE  NAME   PACKAGE            VERSION  STATE", "shop       web    shop.example.com   1.2.0    available", "(cluster)  certs  certs.example.com  -        paused",
		}, "cache"},
		{[]string{"ls", "-A"}, []string{"other      cache  registry.example.com/cache:v1  -        pending", "web"}, ""},
		{[]string{"list", "--cluster"}, []string{"certs"}, "web"},
		{[]string{"list", "-o", "json"}, []string{`"package": "shop.example.com"`, `"version": "1.2.0"`, `"state": "Available"`, `"kind": "ClusterPackage"`}, "cache"},
		{[]string{"list", "--not-ready"}, []string{"(cluster)  certs  certs.example.com  -        paused  0         292y  it is paused, so the engine does not write it (Paused.). To resume it: kubectl package unpause clus…"}, "web"},
		{[]string{"list", "--not-ready", "-o", "json"}, []string{`"message": "it is paused`}, "web"},
		{[]string{"list", "-A"}, []string{"cache"}, ""},
		{[]string{"list", "-o", "yaml"}, []string{"state: Paused"}, "cache"},
		{[]string{"list", "-o", "json", "|jq", ".[-1].version"}, []string{"1.2.0\n"}, ""},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", test.args...)
		for _, want := range test.want {
			if got.Code != 0 || !strings.Contains(got.Out, want) {
				t.Errorf("%v: %q is missing in\n%+v", test.args, want, got)
			}
		}
		if test.not != "" && strings.Contains(got.Out, test.not) {
			t.Errorf("%v: %q is in\n%s", test.args, test.not, got.Out)
		}
		c.Namespace = "shop"
	}
	golden.JSON(t, "list", clitest.InvokeOn(t, clustertest.DialTo(c), "", "list", "-A", "-o", "json").Out)
	if got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t)), "", "list"); got.Code != 0 || !strings.Contains(got.Err, "No package is installed in namespace shop. To see the packages that can be installed: kubectl package available") {
		t.Errorf("%+v", got)
	}
}

// Packages that need help are first, regardless of their names. Scopes that the user may not list
// are named.
func TestListOfManyNamespaces(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		pkg := clustertest.Following(">=1", "1.2.0")
		pkg.Name = name
		objects = append(objects, pkg)
	}
	broken := objects[2].(*corev1alpha1.Package)
	broken.Status.Conditions = []metav1.Condition{clustertest.Condition("Invalid", "True", "Invalid", "manifest.yaml: no phases")}
	c := clustertest.FakeCluster(t, objects...)
	c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			if _, ofPackages := list.(*corev1alpha1.PackageList); ofPackages && o.Namespace == "" {
				return apierrors.NewForbidden(corev1alpha1.GroupVersion.WithResource("packages").GroupResource(), "", nil)
			}
			return w.List(ctx, list, opts...)
		},
	})
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "list", "-A")
	var names []string
	for line := range strings.Lines(got.Out) {
		names = append(names, strings.Fields(line)[1])
	}
	if want := []string{"NAME", "c", "a", "b"}; got.Code != 0 || !slices.Equal(names, want) || !strings.Contains(got.Out, "manifest.yaml: no phases") {
		t.Errorf("got %q, want %q in\n%+v", names, want, got)
	}
	require.Contains(t, got.Err, "Not listed, because it is forbidden: packages of other namespaces\n")
}

func TestListOutdated(t *testing.T) {
	t.Parallel()
	held, moving, gone, byImage := clustertest.Following("<2", "1.2.0"), clustertest.Following("", "1.0.0"), clustertest.Following("", "1.0.0"), clustertest.Following("", "")
	byImage.Spec.PackageRef, byImage.Spec.Image = nil, "example.com/web:v1"
	moving.Name, moving.Spec.Paused = "moving", true
	gone.Name, gone.Spec.PackageRef.Name = "gone", "gone.example.com"
	byImage.Name = "image"
	unmet := clustertest.Following("", "1.0.0")
	unmet.Name = "unmet"
	unmet.Status.Conditions = []metav1.Condition{clustertest.Condition("DependenciesReady", "False", "DependenciesUnsatisfied", "db: no repository offers it\nmore: of this")}
	passed, failed := clustertest.Following(">=1, <2", "1.0.0"), clustertest.Following("<2", "2.0.0")
	passed.Name, failed.Name, failed.Status.Conditions = "passed", "failed", nil
	passed.Status.Conditions = append(passed.Status.Conditions, clustertest.Condition("Resolved", "True", "Resolved", "1.0.0 is the highest that can be; 1.2.0 waits for its dependencies"))
	waiting := clustertest.Following("", "2.0.0")
	waiting.Name, waiting.Status.CurrentVersion = "waiting", "1.0.0"
	waiting.Status.Conditions = []metav1.Condition{clustertest.Condition("AwaitingActivation", "True", "AwaitingActivation", "")}
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "1.2.0", "2.0.0"), held, moving, gone, byImage, unmet, waiting, passed, failed)
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "list", "--outdated")
	want := []string{
		"shop       unmet    shop.example.com  1.0.0      2.0.0   2.0.0   dependencies not satisfied: db: no repository offers it\n",
		"shop       gone     gone.example.com  1.0.0      -       -       no repository offers it any longer",
		"shop       moving   shop.example.com  1.0.0      2.0.0   2.0.0   it is paused",
		"shop       failed   shop.example.com  2.0.0      1.2.0   2.0.0   rolling out",
		"shop       passed   shop.example.com  1.0.0      1.2.0   2.0.0   1.0.0 is the highest that can be; 1.2.0 waits for its dependencies",
		"shop       waiting  shop.example.com  1.0.0      2.0.0   2.0.0   awaiting activation",
		"shop       web      shop.example.com  1.2.0      1.2.0   2.0.0   2.0.0: ",
	}
	for _, line := range want {
		require.Contains(t, got.Out, line)
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "list", "--outdated", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"unmet"`) {
		t.Errorf("got %+v", got)
	} else {
		golden.JSON(t, "list-outdated", got.Out)
	}
	require.Equal(t, "note: 1 package by image follow no repository\n", got.Err)
	if got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0"), clustertest.Following("", "1.0.0"))), "", "list", "--outdated"); got.Out != "Nothing is outdated\n" {
		t.Errorf("got %+v", got)
	}
}
