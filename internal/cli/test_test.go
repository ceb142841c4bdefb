package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTest(t *testing.T) {
	t.Parallel()
	dir := folder(t, goodPackage)
	run := func(reason string, want result, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, invoke(t, "", append([]string{"test", dir}, args...)...), cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
	run("without fixtures", result{1, `✗ blue  no fixtures
    there is no folder .test-fixtures/blue: write it with --update
✗ cluster  no fixtures
    there is no folder .test-fixtures/cluster: write it with --update
`, "Error: 2 of 2 test cases failed in " + dir + "\n"})
	if _, err := os.Stat(filepath.Join(dir, ".test-fixtures")); err == nil {
		t.Error("fixtures were made without being asked for")
	}
	run("written", result{0, `✎ blue  updated
    settings/cm.yaml: no fixture
    web.yaml: no fixture
✎ cluster  updated
    settings/cm.yaml: no fixture
    web.yaml: no fixture
`, ""}, "--update")
	run("as they are", result{0, "✓ blue  passed\n✓ cluster  passed\n", ""})
	run("written again", result{0, "✓ blue  passed\n✓ cluster  passed\n", ""}, "--update")

	change(t, filepath.Join(dir, "settings", "cm.yaml.gotmpl"), "name: color-", "name: colour-")
	if err := os.WriteFile(filepath.Join(dir, ".test-fixtures", "cluster", "old.yaml"), []byte("a: \x1b[31m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	run("after a change", result{1, strings.Replace(diff("blue", "blue", "shop")+diff("cluster", "red", "web"),
		"✗ cluster  failed\n", "✗ cluster  failed\n    old.yaml: not rendered\n    --- .test-fixtures/cluster/old.yaml\n    +++ rendered/old.yaml\n    @@ -1 +0,0 @@\n    -a: \\u001b[31m\n", 1),
		"Error: 2 of 2 test cases failed in " + dir + ": correct the package, or accept what is rendered now by --update\n"})
	got := invoke(t, "", "validate", dir, "--query", `.problems[] | "\(.path) \(.details)"`)
	if want := ".test-fixtures/blue/settings/cm.yaml test case \"blue\": differs\n.test-fixtures/cluster/old.yaml test case \"cluster\": not rendered\n.test-fixtures/cluster/settings/cm.yaml test case \"cluster\": differs\n"; got.out != want || got.code != 1 {
		t.Errorf("validate: %+v", got)
	}
	if got := invoke(t, "", "build", dir); got.code != 1 || !strings.Contains(got.err, "3 problems in ") {
		t.Errorf("build: %+v", got)
	}
	run("as data", result{1, "failed\nfailed\n", "Error: 2 of 2 test cases failed in " + dir + ": correct the package, or accept what is rendered now by --update\n"}, "--query", ".cases[].outcome")
	run("accepted", result{0, "✎ blue  updated\n    settings/cm.yaml: differs\n✎ cluster  updated\n    old.yaml: not rendered\n    settings/cm.yaml: differs\n", ""}, "--update")
	run("afterwards", result{0, "✓ blue  passed\n✓ cluster  passed\n", ""})
}

// change replaces text in a file.
func change(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q", path, from)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTestSchemas(t *testing.T) {
	t.Parallel()
	strict := strings.Replace(goodPackage, "test:\n", "test:\n  kubeconform: {kubernetesVersion: v1.36.0, schemaLocations: [default, 'schemas/{{ .ResourceKind }}.json']}\n", 1)
	strict = strings.Replace(strict, "image: web}", "image: web, imagePullPolicy: Sometimes}", 1)
	dir := fixed(t, folder(t, strict))
	got := invoke(t, "", "test", dir)
	const want = `error: web.yaml.gotmpl (document 1): Kubeconform rejected schema: apps/v1 Deployment shop/web: spec.template.spec.containers[name="web"].imagePullPolicy: expected one of "Always", "IfNotPresent", "Never"`
	if got.code != 1 || !strings.HasPrefix(got.err, want) || !strings.Contains(got.err, "Error: 2 problems in ") {
		t.Errorf("got %+v", got)
	}
	if got := invoke(t, "", "test", dir, "--ignore-schemas"); got.code != 0 {
		t.Errorf("without schemas: %+v", got)
	}
	// What admission may set right is a warning where the manifest does not ask.
	lenient := fixed(t, folder(t, strings.Replace(goodPackage, "image: web}", "image: web, imagePullPolicy: Sometimes}", 1)))
	if got := invoke(t, "", "test", lenient); got.code != 0 || !strings.Contains(got.err, "warning: ") {
		t.Errorf("without kubeconform: %+v", got)
	}
}

func TestTestErrors(t *testing.T) {
	t.Parallel()
	noTests := folder(t, strings.Split(goodPackage, "test:\n")[0]+"-- web.yaml\n"+strings.SplitN(badPackage, "-- cm.yaml\n", 2)[1])
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 1, "Error: arguments invalid: SOURCE is missing"},
		{[]string{"nope"}, 1, "Error: there is no folder nope"},
		{[]string{folder(t, badPackage)}, 1, "Error: 2 problems in "},
		{[]string{noTests}, 1, "Phase name not found in manifest"},
	} {
		got := invoke(t, "", append([]string{"test"}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.err, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	stray := fixed(t, folder(t, goodPackage))
	if err := os.MkdirAll(filepath.Join(stray, ".test-fixtures", "gone"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := invoke(t, "", "test", stray); got.code != 0 || !strings.Contains(got.err, "warning: .test-fixtures/gone: File mismatch against fixture: no test case has this name") {
		t.Errorf("a folder without a case: %+v", got)
	}
}

func TestTestComponents(t *testing.T) {
	t.Parallel()
	component := strings.ReplaceAll(goodPackage, "-- ", "-- components/back/")
	dir := folder(t, strings.Replace(goodPackage, "  phases:", "  components: {}\n  phases:", 1)+component)
	fixed(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "components", "back", ".test-fixtures", "blue", "web.yaml")); err != nil {
		t.Error(err)
	}
	change(t, filepath.Join(dir, "components", "back", "settings", "cm.yaml.gotmpl"), "name: color-", "name: colour-")
	got := invoke(t, "", "test", dir)
	if got.code != 1 || !strings.HasPrefix(got.out, "✓ blue  passed\n✓ cluster  passed\n✗ back/blue  failed\n") {
		t.Errorf("got %+v", got)
	}
	if got := invoke(t, "", "validate", dir, "--query", `.problems[] | "\(.component) \(.path)"`); got.out != "back .test-fixtures/blue/settings/cm.yaml\nback .test-fixtures/cluster/settings/cm.yaml\n" {
		t.Errorf("validate: %+v", got)
	}
}
