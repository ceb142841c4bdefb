package install_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
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
}

// Every command refuses a package in a scope that it does not allow, names the flag, and
// creates nothing.
func TestWrongScope(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	for scope, tc := range map[string]struct {
		scope corev1alpha1.Scope
		flags []string
		want  string
	}{
		"Cluster":    {corev1alpha1.ScopeNamespaced, []string{"-n", "shop"}, " can only be installed as a ClusterPackage: add --cluster\n"},
		"Namespaced": {corev1alpha1.ScopeCluster, []string{"--cluster"}, " can only be installed as a Package, in a namespace: leave out --cluster\n"},
	} {
		dir := t.TempDir() + "/web"
		args := []string{"init", dir}
		if scope == "Cluster" {
			args = append(args, "--cluster")
		}
		image := host + "/" + strings.ToLower(scope) + ":v1"
		for _, args := range [][]string{args, {"build", dir, "--push", "-t", image}} {
			if got := clitest.Invoke(t, "", args...); got.Code != 0 {
				t.Fatal(got)
			}
		}
		for _, command := range []string{"render", "inspect"} {
			if got := clitest.Invoke(t, "", append([]string{command, dir}, tc.flags...)...); got != (clitest.Result{Code: 1, Out: "", Err: "Error: " + dir + tc.want}) {
				t.Errorf("%s: %+v", command, got)
			}
		}
		c := clustertest.FakeCluster(t)
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"install", image, "web", "--wait=false"}, tc.flags...)...); got != (clitest.Result{Code: 1, Out: "", Err: "Error: " + image + tc.want}) {
			t.Errorf("install: %+v", got)
		}
		if _, err := c.Read(t.Context(), c.Target(tc.scope, "web")); err == nil {
			t.Error("the package was made")
		}
	}
}

// A configuration that does not match the schema of an image is refused before the first write,
// even for an existing package.
func TestConfigIsCheckedFirst(t *testing.T) {
	t.Parallel()
	image := imagetest.ServeRegistry(t) + "/configured:v1"
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	write("web/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {package-operator.run/phase: one}}\n")
	push := func(version string) {
		write("web/manifest.yaml", "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: web}\nspec:\n  scopes: [Namespaced]\n  phases: [{name: one}]\n"+version+
			"  config: {openAPIV3Schema: {type: object, required: [size], properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size < 10, message: ten is for clusters}]}}\n")
		if got := clitest.Invoke(t, "", "build", filepath.Join(dir, "web"), "--push", "-t", image); got.Code != 0 {
			t.Fatal(got)
		}
	}
	push("  version: 1.0.0\n")
	c := clustertest.FakeCluster(t)
	good, bad := write("good.yaml", "size: 1\n"), write("bad.yaml", "size: large\ncolour: red\n")
	install := func(config string) clitest.Result {
		return clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", image, "web", "-n", "shop", "--wait=false", "--config", config)
	}
	if got := install(write("rule.yaml", "size: 10\n")); got.Code != 1 || !strings.Contains(got.Err, "all together: ") || !strings.Contains(got.Err, "ten is for clusters") {
		t.Errorf("a rule over all values: %+v", got)
	}
	for range 2 {
		got := install(bad)
		for _, want := range []string{"the values do not fit " + image, "colour: unknown key", "size: ", "To see its values: kubectl package inspect " + image} {
			if got.Code != 1 || !strings.Contains(got.Err, want) {
				t.Errorf("no %q in %+v", want, got)
			}
		}
		pkg, err := c.Read(t.Context(), c.Target(corev1alpha1.ScopeNamespaced, "web"))
		if err == nil && string(pkg.PackageSpec().Config.Raw) != `{"size":1}` {
			t.Errorf("it has the configuration %s", pkg.PackageSpec().Config.Raw)
		}
		if got := install(good); got.Code != 0 {
			t.Fatalf("got %+v", got)
		}
	}
	push("") // the manager only warns of an unknown key and a broken rule
	if got := install(write("old.yaml", "size: 10\ncolour: red\n")); got.Code != 0 {
		t.Errorf("got %+v", got)
	}
}

// withNeeds returns a shop that depends on db and mail.
func withNeeds() client.Object {
	offered := clustertest.OfferedAs("shop", "1.0.0").(*corev1alpha1.AvailablePackage)
	for _, name := range []string{"db", "mail"} {
		offered.Spec.Versions[0].Dependencies = append(offered.Spec.Versions[0].Dependencies,
			corev1alpha1.Dependency{Name: name, Package: &corev1alpha1.DependencyPackage{Name: name + ".example.com"}})
	}
	return offered
}

func TestInstallOverrides(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, withNeeds())
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "shop.example.com", "shop", "--wait=false", "--values", clitest.ValuesFile(t, "title: Corner\n"),
		"--override", `db={"package":{"version":"<2"},"configFrom":[{"configMapKeyRef":{"name":"db","key":"values"}}]}`, "--override", `mail=package: {name: post.example.com}`)
	if got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	pkg, err := c.Read(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "shop"})
	require.NoError(t, err)
	d := pkg.PackageSpec().Dependencies
	if d == nil || len(d.Overrides) != 2 || d.Overrides[0].Package.Version != "<2" || d.Overrides[1].Package.Name != "post.example.com" ||
		d.Overrides[0].ConfigFrom[0].ConfigMapKeyRef.Name != "db" {
		t.Errorf("%+v", pkg.PackageSpec())
	}

	// An override that is not named stays.
	got = clitest.InvokeOn(t, clustertest.DialTo(c), "", "upgrade", "shop", "--wait=false", "--override", `db={"package":{"version":"<3"}}`)
	if got.Code != 0 || !strings.Contains(got.Out, "changed: dependencies") {
		t.Fatalf("%+v", got)
	}
	if pkg, err = c.Read(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	if d := pkg.PackageSpec().Dependencies; d.Overrides[0].Package.Version != "<3" ||
		len(d.Overrides[0].ConfigFrom) != 1 || d.Overrides[1].Package == nil {
		t.Errorf("%+v", d)
	}
}

func TestInstallOverridesRefused(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, withNeeds())

	for want, args := range map[string][]string{
		"has no NAME=":                  {"--override", "db"},
		"--override db changes nothing": {"--override", "db={}"},
		`unknown field "version". It takes package{name, version, prereleases} and configFrom`: {"--override", "db={version: 1}"},
		"--override db: package.version": {"--override", "db={package: {version: what}}"},
		"is given twice":                 {"--override", "db={package: {version: '1'}}", "--override", "db={package: {version: '2'}}"},
		"shop.example.com: version 1.0.0 has no dependency dbs. Did you mean": {"--override", "dbs={package: {version: <2}}"},
		"version 1.0.0 has no dependency other. It has: db, mail":             {"--override", "other={package: {version: <2}}"},
	} {
		got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"install", "shop.example.com", "shop", "--wait=false"}, args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v\nwant %s", args, got, want)
		}
	}
	var left corev1.ConfigMapList
	if err := c.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("left: %v %+v", err, left.Items)
	}
}
