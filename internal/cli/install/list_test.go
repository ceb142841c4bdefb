package install_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/cluster/clustertest"
)

func TestList(t *testing.T) {
	t.Parallel()
	web := clustertest.Following(">=1", "1.2.0")
	web.Status.Resolved.CatalogName = "shop.example.com"
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
		{[]string{"list", "-n", "other", "-o", "name"}, []string{"package.package-operator.run/cache\nclusterpackage.package-operator.run/certs\n"}, "web"},
		{[]string{"list", "-o", "json"}, []string{`"package": "shop.example.com"`, `"version": "1.2.0"`, `"state": "Available"`, `"kind": "ClusterPackage"`}, "cache"},
		{[]string{"list", "-o", "yaml"}, []string{"state: Paused"}, "cache"},
		{[]string{"list", "--query", ".[0].version"}, []string{"1.2.0\n"}, ""},
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
	if got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t)), "", "list"); got.Code != 0 || !strings.Contains(got.Err, "No package is installed in namespace shop. What can be: kubectl package available list") {
		t.Errorf("%+v", got)
	}
}
