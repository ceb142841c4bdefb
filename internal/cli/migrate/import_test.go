package migrate_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

func TestImportCarvel(t *testing.T) {
	t.Parallel()
	got := clitest.Invoke(t, "", "import", "carvel", "../carvel/testdata/input.yaml")
	if got.Code != 0 || strings.Count(got.Out, "\nkind: ") != 6 || !strings.Contains(got.Err, "  - spec.values[0]: Secret missing is not among the input") ||
		!strings.HasSuffix(got.Err, " not carried over\n") || strings.Contains(got.Out+got.Err, "hunter2") {
		t.Errorf("%+v", got)
	}
	if got := clitest.Invoke(t, "kind: Secret\napiVersion: v1\nmetadata: {name: a}\n", "import", "carvel", "-"); got.Code != 1 || !strings.Contains(got.Err, "there is no PackageInstall or PackageRepository") {
		t.Errorf("%+v", got)
	}
}

// What the input shows to be impossible to install is counted as not carried over, whole, and paused.
func TestImportPausesWhatCannotBeInstalled(t *testing.T) {
	t.Parallel()
	const install = `apiVersion: packaging.carvel.dev/v1alpha1
kind: PackageInstall
metadata: {name: till, namespace: shop}
spec: {serviceAccountName: a, packageRef: {refName: till.tools.example.com, versionSelection: {constraints: '>=1.0.0'}}}
---
`
	inline := "apiVersion: packaging.carvel.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: tools, namespace: shop}\nspec:\n  fetch:\n    inline:\n      paths:\n        packages/till.yml: |\n          " +
		strings.ReplaceAll(clitest.CarvelDocuments, "\n", "\n          ") + "\n"
	for reason, repository := range map[string]string{"an inline repository": inline, "Packages": clitest.CarvelDocuments} {
		got := clitest.Invoke(t, install+repository, "import", "carvel", "-")
		want := "- spec.packageRef: 1.0.0 cannot be installed: it asks for template.spec.template[0].ytt, which packages do not have here: render it with the tools of kapp-controller, and make a package of the objects by kubectl package kickstart\n"
		if got.Code != 0 || !strings.Contains(got.Err, want) || !strings.Contains(got.Out, "paused: true") || strings.Contains(got.Err, "of which 0 not carried over") {
			t.Errorf("%s: %+v", reason, got)
		}
		installable := strings.ReplaceAll(repository, "ytt: {}", "kbld: {}")
		if got := clitest.Invoke(t, install+installable, "import", "carvel", "-"); got.Code != 0 || strings.Contains(got.Out, "paused: true") {
			t.Errorf("%s that can be installed: %+v", reason, got)
		}
	}
}
