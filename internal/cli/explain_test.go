package cli

import (
	"os"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

func TestExplainPackage(t *testing.T) {
	t.Parallel()
	dir := folder(t, goodPackage)
	got := invoke(t, "", "explain", dir)
	if got.code != 0 || !strings.HasPrefix(got.out, "web 1.2.0\n  Installs as  Package or ClusterPackage\n  Test cases   blue, cluster\n\nPhases\n  1  settings\n     ConfigMap shop/color-blue\n") {
		t.Errorf("got %+v", got)
	}
	for want, args := range map[string][]string{
		"color string red\n":         {"--query", `.config[] | "\(.key) \(.type) \(.default)"`},
		"lab\n":                      {"-n", "lab", "--query", ".phases[0].objects[0].namespace"},
		"web\n":                      {"--cluster", "--query", ".phases[0].objects[0].namespace"},
		"color-red\n":                {"--config-testcase", "cluster", "--query", ".phases[0].objects[0].name"},
		"condition Available=True\n": {"--query", ".phases[1].objects[0].probes[]"},
	} {
		if got := invoke(t, "", append([]string{"explain", dir}, args...)...); got.code != 0 || got.out != want {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
	for want, args := range map[string][]string{
		"2 problems in ": {folder(t, badPackage)},
		"arguments invalid: --cluster and --namespace contradict each other": {dir, "--cluster", "-n", "x"},
		`unknown output format "xml"`:                                        {dir, "-o", "xml"},
		"there is no folder ":                                                {dir + "/nope"},
		"--config is for a package in a folder or an image, and package/web is an installed one": {"package/web", "--config", "x"},
		"package/web and --cluster contradict each other":                                        {"package/web", "--cluster"},
	} {
		if got := invoke(t, "", append([]string{"explain"}, args...)...); got.code != 1 || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

// A folder may have the name of an installed package: it counts if it has a manifest, and
// a note says so.
func TestExplainBesideAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"web", "shop"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS("shop", os.DirFS(folder(t, goodPackage))); err != nil {
		t.Fatal(err)
	}
	if n, is := installedName("web"); !is || n.Name != "web" {
		t.Error("a folder that is no package hides one that is installed")
	}
	const note = "note: this is about the folder shop; of an installed package: kubectl package explain package/shop or clusterpackage/shop\n"
	if got := invoke(t, "", "explain", "shop"); got.code != 0 || got.err != note || !strings.HasPrefix(got.out, "web 1.2.0\n") {
		t.Errorf("got %+v", got)
	}
	if got := invoke(t, "", "explain", "shop/"); got.err != "" {
		t.Errorf("it is clear what is meant: %+v", got)
	}
}

// How a package stands is said in the words of status.
func TestDiagnosisText(t *testing.T) {
	t.Parallel()
	for summary, want := range map[progress.Summary]string{
		progress.SummaryImagePullError: "package shop/web: image cannot be pulled, phase deploy waits\nCause  it is so\\u001b\n",
		progress.SummaryProgressing:    "package shop/web: rolling out, phase deploy waits\n",
		progress.SummaryPending:        "package shop/web: pending, phase deploy waits\n",
	} {
		d := &diagnose.Diagnosis{Summary: summary, Phase: "deploy", Reason: diagnose.ReasonPackage, Cause: "it is so\x1b"}
		if got := diagnosisText("package shop/web", d, terminal.Plain()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", summary, got)
		}
	}
	fine := &diagnose.Diagnosis{Summary: progress.SummaryAvailable, Reason: diagnose.ReasonNone, Cause: "everything is as the spec asks for"}
	if got := diagnosisText("package shop/web", fine, terminal.Plain()); got != "package shop/web: available, everything is as the spec asks for\n" {
		t.Error(got)
	}
}
