package author_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/clitest"
)

func TestRender(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	const want = `# Phase settings
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    package-operator.run/instance: shop-web
    package-operator.run/package: shop-web
    package-operator.run/version: 1.2.0
  name: color-blue
  namespace: shop
---
# Phase deploy
apiVersion: apps/v1
kind: Deployment
`
	got := clitest.Invoke(t, "", "render", dir)
	if got.Code != 0 || !strings.HasPrefix(got.Out, want) || got.Err != "" {
		t.Errorf("got %+v", got)
	}
	for _, test := range []struct {
		reason, stdin, want string
		args                []string
	}{
		{"names", "", "configmap/color-blue\ndeployment.apps/web\nservice/web\n", []string{"-o", "name"}},
		{"another configuration", "color: green\n", "color-green\n", []string{"--config", "-", "-o", "json", "|jq", ".items[0].metadata.name"}},
		{"another namespace", "", "lab\n", []string{"-n", "lab", "-o", "json", "|jq", ".items[0].metadata.namespace"}},
		{"a test case", "", "web\n", []string{"--config-testcase", "cluster", "-o", "json", "|jq", ".items[0].metadata.namespace"}},
		{"a ClusterPackage", "", "color-blue web\n", []string{"--cluster", "-o", "json", "|jq", `.items[0].metadata | "\(.name) \(.namespace)"`}},
	} {
		got := clitest.Invoke(t, test.stdin, append([]string{"render", dir}, test.args...)...)
		if diff := cmp.Diff(test.want, got.Out); diff != "" || got.Code != 0 {
			t.Errorf("%s: %s\n%s", test.reason, diff, got.Err)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	t.Parallel()
	good, bad := clitest.Folder(t, clitest.GoodPackage), clitest.Folder(t, clitest.BadPackage)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"arguments invalid: SOURCE|IMAGE is missing", nil},
		{"2 problems in " + bad, []string{bad}},
		{`the package has no test case "blu". Did you mean "blue"?`, []string{good, "--config-testcase", "blu"}},
		{"arguments invalid: --cluster and --namespace contradict each other", []string{good, "--cluster", "-n", "x"}},
		{`arguments invalid: unknown output format "xml": choose json, yaml or name`, []string{good, "-o", "xml"}},
	} {
		got := clitest.Invoke(t, "", append([]string{"render"}, test.args...)...)
		if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "Error: "+test.want) {
			t.Errorf("%q: %+v, want %s", test.args, got, test.want)
		}
	}
}

func TestRenderUsesTheLock(t *testing.T) {
	t.Parallel()
	locked := strings.Replace(clitest.GoodPackage, "  phases:", "  images:\n  - {name: web, image: example.com/web:v1}\n  phases:", 1)
	locked = strings.Replace(locked, "image: web}", "image: {{ .images.web }}}", 1) + `
-- manifest.lock.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifestLock
metadata: {name: web}
spec:
  images:
  - {name: web, image: "example.com/web:v1", digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
`
	dir := clitest.Folder(t, locked)
	const image = ".items[1].spec.template.spec.containers[0].image"
	for want, args := range map[string][]string{
		"example.com/web@sha256:0123456789012345678901234567890123456789012345678901234567890123\n": nil,
		"registry.package-operator.run/static-image\n":                                              {"--config-testcase", "blue"},
	} {
		if got := clitest.Invoke(t, "", slices.Concat([]string{"render", dir}, args, []string{"-o", "json", "|jq", image})...); got.Out != want {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestCompletionOfPackages(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"lint", dir, "--fail-on", "w"}, "error\nwarning\ninfo\nnever\n:4\n"},
		{[]string{"render", dir, "-o", ""}, "json\nyaml\nname\n:4\n"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"__complete"}, test.args...)...); got.Out != test.want {
			t.Errorf("%q: %+v, want %q", test.args, got, test.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := clitest.Invoke(t, "", "completion", shell); got.Code != 0 || !strings.Contains(got.Out, "kubectl-package") {
			t.Errorf("%s: exit code %d, %d bytes", shell, got.Code, len(got.Out))
		}
	}
}
