package author_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/require"
)

func TestTest(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	run := func(reason string, want clitest.Result, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, clitest.Invoke(t, "", append([]string{"test", dir}, args...)...), cmp.AllowUnexported(clitest.Result{})); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
	run("without fixtures", clitest.Result{Code: 1, Out: `✗ blue  no fixtures
    there is no folder .test-fixtures/blue: write it with --update
✗ cluster  no fixtures
    there is no folder .test-fixtures/cluster: write it with --update
`, Err: "Error: 2 of 2 test cases failed in " + dir + "\n"})
	if _, err := os.Stat(filepath.Join(dir, ".test-fixtures")); err == nil {
		t.Error("fixtures were created without --update")
	}
	run("written", clitest.Result{Code: 0, Out: `✎ blue  updated
    settings/cm.yaml: no fixture
    web.yaml: no fixture
✎ cluster  updated
    settings/cm.yaml: no fixture
    web.yaml: no fixture
`, Err: ""}, "--update")
	run("as they are", clitest.Result{Code: 0, Out: "✓ blue  passed\n✓ cluster  passed\n", Err: ""})
	run("written again", clitest.Result{Code: 0, Out: "✓ blue  passed\n✓ cluster  passed\n", Err: ""}, "--update")

	change(t, filepath.Join(dir, "settings", "cm.yaml.gotmpl"), "name: color-", "name: colour-")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".test-fixtures", "cluster", "old.yaml"), []byte("a: \x1b[31m\n"), 0o600))
	const hunk = `    @@ -1,6 +1,6 @@
     apiVersion: v1
     kind: ConfigMap
     metadata:
    -  name: color-COLOR
    +  name: colour-COLOR
       namespace: NAMESPACE
       annotations: {package-operator.run/phase: settings}
`
	diff := func(name, color, namespace string) string {
		return "✗ " + name + "  failed\n" + `    settings/cm.yaml: differs
    --- .test-fixtures/` + name + `/settings/cm.yaml
    +++ rendered/settings/cm.yaml
` + strings.NewReplacer("COLOR", color, "NAMESPACE", namespace).Replace(hunk)
	}
	run("after a change", clitest.Result{Code: 1, Out: strings.Replace(diff("blue", "blue", "shop")+diff("cluster", "red", "web"),
		"✗ cluster  failed\n", "✗ cluster  failed\n    old.yaml: not rendered\n    --- .test-fixtures/cluster/old.yaml\n    +++ rendered/old.yaml\n    @@ -1 +0,0 @@\n    -a: \\u001b[31m\n", 1),
		Err: "Error: 2 of 2 test cases failed in " + dir + ": correct the package, or accept the new output with --update\n"})
	got := clitest.Invoke(t, "", "validate", dir, "-o", "json", "|jq", `.problems[] | "\(.path) \(.details)"`)
	if want := ".test-fixtures/blue/settings/cm.yaml test case \"blue\": differs\n.test-fixtures/cluster/old.yaml test case \"cluster\": not rendered\n.test-fixtures/cluster/settings/cm.yaml test case \"cluster\": differs\n"; got.Out != want || got.Code != 1 {
		t.Errorf("validate: %+v", got)
	}
	if got := clitest.Invoke(t, "", "build", dir); got.Code != 1 || !strings.Contains(got.Err, "3 problems in ") {
		t.Errorf("build: %+v", got)
	}
	run("as data", clitest.Result{Code: 1, Out: "failed\nfailed\n", Err: "Error: 2 of 2 test cases failed in " + dir + ": correct the package, or accept the new output with --update\n"}, "-o", "json", "|jq", ".cases[].outcome")
	run("accepted", clitest.Result{Code: 0, Out: "✎ blue  updated\n    settings/cm.yaml: differs\n✎ cluster  updated\n    old.yaml: not rendered\n    settings/cm.yaml: differs\n", Err: ""}, "--update")
	run("afterwards", clitest.Result{Code: 0, Out: "✓ blue  passed\n✓ cluster  passed\n", Err: ""})
}

// change replaces text in a file.
func change(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q", path, from)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}

func TestTestSchemas(t *testing.T) {
	t.Parallel()
	strict := strings.Replace(clitest.GoodPackage, "test:\n", "test:\n  kubeconform: {kubernetesVersion: v1.36.0, schemaLocations: [default, 'schemas/{{ .ResourceKind }}.json']}\n", 1)
	strict = strings.Replace(strict, "image: web}", "image: web, imagePullPolicy: Sometimes}", 1)
	dir := clitest.Fixed(t, clitest.Folder(t, strict))
	got := clitest.Invoke(t, "", "test", dir)
	const want = `error: web.yaml.gotmpl (document 1): Kubeconform rejected schema: apps/v1 Deployment shop/web: spec.template.spec.containers[name="web"].imagePullPolicy: expected one of "Always", "IfNotPresent", "Never"`
	if got.Code != 1 || !strings.HasPrefix(got.Err, want) || !strings.Contains(got.Err, "Error: 2 problems in ") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "test", dir, "--ignore-schemas"); got.Code != 0 {
		t.Errorf("without schemas: %+v", got)
	}
	// A value that admission can correct is a warning if the manifest does not require a strict
	// check.
	lenient := clitest.Fixed(t, clitest.Folder(t, strings.Replace(clitest.GoodPackage, "image: web}", "image: web, imagePullPolicy: Sometimes}", 1)))
	if got := clitest.Invoke(t, "", "test", lenient); got.Code != 0 || !strings.Contains(got.Err, "warning: ") {
		t.Errorf("without kubeconform: %+v", got)
	}
}

func TestTestErrors(t *testing.T) {
	t.Parallel()
	noTests := clitest.Folder(t, strings.Split(clitest.GoodPackage, "test:\n")[0]+"-- web.yaml\n"+strings.SplitN(clitest.BadPackage, "-- cm.yaml\n", 2)[1])
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 1, "Error: arguments invalid: SOURCE is missing"},
		{[]string{"nope"}, 1, "Error: there is no folder nope"},
		{[]string{clitest.Folder(t, clitest.BadPackage)}, 1, "Error: 2 problems in "},
		{[]string{noTests}, 1, "Phase name not found in manifest"},
	} {
		got := clitest.Invoke(t, "", append([]string{"test"}, test.args...)...)
		if got.Code != test.code || !strings.Contains(got.Err, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
}

func TestTestComponents(t *testing.T) {
	t.Parallel()
	component := strings.ReplaceAll(clitest.GoodPackage, "-- ", "-- components/back/")
	dir := clitest.Folder(t, strings.Replace(clitest.GoodPackage, "  phases:", "  components: {}\n  phases:", 1)+component)
	clitest.Fixed(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "components", "back", ".test-fixtures", "blue", "web.yaml")); err != nil {
		t.Error(err)
	}
	change(t, filepath.Join(dir, "components", "back", "settings", "cm.yaml.gotmpl"), "name: color-", "name: colour-")
	got := clitest.Invoke(t, "", "test", dir)
	if got.Code != 1 || !strings.HasPrefix(got.Out, "✓ blue  passed\n✓ cluster  passed\n✗ back/blue  failed\n") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "validate", dir, "-o", "json", "|jq", `.problems[] | "\(.component) \(.path)"`); got.Out != "back .test-fixtures/blue/settings/cm.yaml\nback .test-fixtures/cluster/settings/cm.yaml\n" {
		t.Errorf("validate: %+v", got)
	}
}
