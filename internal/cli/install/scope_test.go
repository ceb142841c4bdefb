package install_test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// Every command refuses a package in a scope that it does not allow, names the flag, and
// creates nothing.
func TestWrongScope(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
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
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "http://") + "/configured:v1"
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
