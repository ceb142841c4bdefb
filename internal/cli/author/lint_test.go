package author_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/clitest"
)

func TestLint(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, strings.Replace(clitest.GoodPackage, "image: web}", "image: web:1}", 1))
	bad := clitest.Folder(t, clitest.BadPackage)
	const want = `warning: manifest.yaml: probe-misses-failed-rollout: spec.availabilityProbes[0]: Deployment web: true before pods of a new template are ready, with availableReplicas 1, readyReplicas 1, replicas 1
    Probe .status.updatedReplicas, .status.replicas and .status.availableReplicas, each equal to .spec.replicas, as the recipes of docs/packages/probes.md do.
warning: web.yaml.gotmpl (document 1): unpinned-image: apps/v1 Deployment shop/web: spec.template.spec.containers[name="web"].image: web:1
    List it under spec.images of the manifest, run ` + "`kubectl package update`" + `, and write {{ .images.NAME }} in a template.
info: manifest.yaml: no-display: spec.display: it is missing
    Add name, shortDescription and maintainers.
info: manifest.yaml: undocumented-config: spec.config.openAPIV3Schema.properties.color: the key color has no description
    Describe its effect and its unit.
info: web.yaml.gotmpl (document 1): ready-at-once: apps/v1 Deployment shop/web: spec.template.spec.containers: no container has a readinessProbe or a startupProbe, and minReadySeconds is 0
    Add a readinessProbe, or set minReadySeconds.
2 warnings, 3 info
`
	if diff := cmp.Diff(clitest.Result{Code: 0, Out: want, Err: ""}, clitest.Invoke(t, "", "lint", dir, "--disable", "foreign-namespace"), cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		reason string
		args   []string
		code   int
		out    string
		err    string
	}{
		{"nothing found", []string{dir, "--rule", "no-tests"}, 0, "nothing found\n", ""},
		{"without some", []string{dir, "--disable", "unpinned-image,no-display,probe-misses-failed-rollout,ready-at-once", "--disable", "foreign-namespace", "-o", "json", "|jq", ".findings[].rule"}, 0, "undocumented-config\n", ""},
		{"stricter", []string{dir, "--rule", "no-display", "--fail-on", "info", "-o", "json", "|jq", ".counts.info"}, 1, "1\n", "Error: 1 info in " + dir + "\n"},
		{"an error", []string{clitest.Folder(t, clitest.GoodPackage), "--rule", "latest-image", "-o", "json", "|jq", ".findings[0].level"}, 1, "error\n", "Error: 1 error in "},
		{"an error that is let pass", []string{clitest.Folder(t, clitest.GoodPackage), "--rule", "latest-image", "--fail-on", "never", "-o", "json", "|jq", ".findings[0].level"}, 0, "error\n", ""},
		{"an upgrade", []string{dir, "--rule", "immutable-field", "--from", clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "app: web", "app: web2")), "-o", "json", "|jq", ".findings[].details"}, 1,
			"differs from the older package in spec.selector, which cannot change\n", "Error: 1 error in "},
		{"the rules", []string{"--rules", "-o", "json", "|jq", `.[] | select(.name == "keep-data").level`}, 0, "warning\n", ""},
		{"an unknown rule", []string{dir, "--disable", "keep-dat"}, 1, "", `Error: there is no rule "keep-dat". Did you mean "keep-data"?`},
		{"an unknown level", []string{dir, "--fail-on", "bad"}, 1, "", `Error: arguments invalid: unknown --fail-on "bad"`},
		{"no package", nil, 1, "", "Error: arguments invalid: SOURCE|IMAGE is missing"},
		{"an invalid package", []string{clitest.Folder(t, clitest.BadPackage)}, 1, "", "Error: 2 problems in "},
		{"an invalid older package", []string{dir, "--from", bad}, 1, "", "Error: 2 problems in " + bad},
	} {
		got := clitest.Invoke(t, "", append([]string{"lint"}, test.args...)...)
		if got.Code != test.code || got.Out != test.out || !strings.Contains(got.Err, test.err) || test.err == "" && got.Err != "" {
			t.Errorf("%s: got %+v", test.reason, got)
		}
	}
}

func TestLintSaysLessOfMany(t *testing.T) {
	t.Parallel()
	text := clitest.GoodPackage
	for i := range 25 {
		text += fmt.Sprintf("-- many/%02d.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d, namespace: shop, annotations: {package-operator.run/phase: deploy}}\nspec: {containers: [{name: a, image: 'a:1'}]}\n", i, i)
	}
	got := clitest.Invoke(t, "", "lint", clitest.Folder(t, strings.Replace(text, "  - name: cluster\n    context:\n      package: {metadata: {name: web}}\n", "", 1)), "--rule", "unpinned-image")
	if want := "warning: 5 more of unpinned-image (`kubectl package lint -o json` lists all)\n25 warnings\n"; got.Code != 0 || !strings.HasSuffix(got.Out, want) || strings.Count(got.Out, "unpinned-image: v1 Pod") != 20 {
		t.Errorf("got %+v", got)
	}
}
