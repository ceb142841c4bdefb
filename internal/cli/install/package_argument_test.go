package install_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
)

func TestInstallNamesPackageAndVersion(t *testing.T) {
	t.Parallel()
	values := clitest.ValuesFile(t, "title: Corner\n")
	for arg, want := range map[string]string{
		"shop.example.com/1.0.0":  "1.0.0",
		"shop.example.com/v2.0.0": "2.0.0",
		"shop.example.com":        "",
	} {
		c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", arg, "--wait=false", "--values", values); got.Code != 0 {
			t.Errorf("%s: %+v", arg, got)
			continue
		}
		pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "shop.example.com"))
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		if ref := pkg.PackageSpec().PackageRef; ref == nil || ref.Name != "shop.example.com" || ref.Version != want {
			t.Errorf("%s: installs %+v", arg, ref)
		}
	}
	for arg, want := range map[string]string{
		"shop.example.com/9.0.0":        `no version of shop.example.com can be installed with "9.0.0"`,
		"shpo.example.com/1.0.0":        `no repository offers shpo.example.com in namespace shop. Did you mean "shop.example.com"?`,
		"shop.example.com:1.0.0":        `"shop.example.com:1.0.0" names no registry: write an image in full, such as docker.io/library/web:v1, or an offered package by its name, with --version`,
		"shop.example.com@1.0.0":        "names no registry",
		"stable/shop.example.com:1.0.0": "names no registry",
		"stable/other":                  "names no registry",
	} {
		c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", arg, "--wait=false", "--values", values); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v, want %s", arg, got, want)
		}
		clustertest.Unwritten(t, c)
	}
	for _, image := range []string{"localhost/shop:1.0.0", "127.0.0.1:1/stable/shop:1.0.0", "stable.example.com/shop:1.0.0"} {
		c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", image, "web", "--wait=false", "--config", values); got.Code != 0 || !strings.Contains(got.Out, "web created") {
			t.Errorf("the image %s: %+v", image, got)
		}
	}
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "shop.example.com/1.0.0", "--version", "2.0.0"); got.Code != 1 || !strings.Contains(got.Err, "contradict each other") {
		t.Errorf("two versions: %+v", got)
	}
}

func TestSuggestionsAreOfVisibleRepositories(t *testing.T) {
	t.Parallel()
	hidden := &corev1alpha1.ClusterPackageRepository{ObjectMeta: metav1.ObjectMeta{Name: "stable"}}
	hidden.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"shop": "yes"}}
	own := clustertest.OfferedAs("shop", "1.0.0")
	own.SetName("own.tools.example.org")
	own.(*corev1alpha1.AvailablePackage).Spec.PackageName = "own.tools.example.org"
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("", "1.0.0"), own, hidden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for arg, want := range map[string]string{
		"shop.example.com":      "no repository offers shop.example.com in namespace shop. See: kubectl",
		"shpo.example.com":      "no repository offers shpo.example.com in namespace shop. See: kubectl",
		"onw.tools.example.org": `Did you mean "own.tools.example.org"?`,
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", arg); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v, want %s", arg, got, want)
		}
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "__complete", "install", ""); !strings.HasPrefix(got.Out, "own.tools.example.org\n:") {
		t.Errorf("completion: %+v", got)
	}
}

func TestPullSecrets(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0", "2.0.0"))
	values := clitest.ValuesFile(t, "title: Corner\n")
	for _, test := range []struct {
		args []string
		want []corev1alpha1.LocalSecretReference
		says string
	}{
		{[]string{"install", "shop.example.com", "web", "--values", values, "--pull-secret", "a", "--pull-secret", "b"}, []corev1alpha1.LocalSecretReference{{Name: "a"}, {Name: "b"}}, "created"},
		{[]string{"upgrade", "web", "--version", "1.0.0"}, []corev1alpha1.LocalSecretReference{{Name: "a"}, {Name: "b"}}, "changed"},
		{[]string{"upgrade", "web", "--pull-secret", "c"}, []corev1alpha1.LocalSecretReference{{Name: "c"}}, "pull secrets"},
		{[]string{"install", "shop.example.com", "web", "--pull-secret", ""}, nil, "pull secrets"},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append(test.args, "--wait=false")...)
		if got.Code != 0 || !strings.Contains(got.Out, test.says) {
			t.Fatalf("%v: %+v", test.args, got)
		}
		pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
		if err != nil || !slices.Equal(pkg.PackageSpec().ImagePullSecrets, test.want) {
			t.Errorf("%v: %v %v", test.args, pkg.PackageSpec().ImagePullSecrets, err)
		}
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "upgrade", "web", "--pull-secret", "A/b"); got.Code != 1 || !strings.Contains(got.Err, `--pull-secret "A/b" is not a valid name of a Secret`) {
		t.Errorf("%+v", got)
	}
}
