package operate_test

import (
	"os"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
)

func TestExplainPackage(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	got := clitest.Invoke(t, "", "explain", dir)
	if got.Code != 0 || !strings.HasPrefix(got.Out, "web 1.2.0\n  Installs as  Package or ClusterPackage\n  Test cases   blue, cluster\n\nPhases\n  1  settings\n     ConfigMap shop/color-blue\n") {
		t.Errorf("got %+v", got)
	}
	for want, args := range map[string][]string{
		"color string red\n":         {"--query", `.config[] | "\(.key) \(.type) \(.default)"`},
		"lab\n":                      {"-n", "lab", "--query", ".phases[0].objects[0].namespace"},
		"web\n":                      {"--cluster", "--query", ".phases[0].objects[0].namespace"},
		"color-red\n":                {"--config-testcase", "cluster", "--query", ".phases[0].objects[0].name"},
		"condition Available=True\n": {"--query", ".phases[1].objects[0].probes[]"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"explain", dir}, args...)...); got.Code != 0 || got.Out != want {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
	for want, args := range map[string][]string{
		"2 problems in ": {clitest.Folder(t, clitest.BadPackage)},
		"arguments invalid: --cluster and --namespace contradict each other": {dir, "--cluster", "-n", "x"},
		`unknown output format "xml"`:                                        {dir, "-o", "xml"},
		"there is no folder ":                                                {dir + "/nope"},
		"--config is for a package in a folder or an image, and package/web is an installed one": {"package/web", "--config", "x"},
		"package/web and --cluster contradict each other":                                        {"package/web", "--cluster"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"explain"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
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
	if err := os.CopyFS("shop", os.DirFS(clitest.Folder(t, clitest.GoodPackage))); err != nil {
		t.Fatal(err)
	}
	const note = "note: this is about the folder shop; of an installed package: kubectl package explain package/shop or clusterpackage/shop\n"
	if got := clitest.Invoke(t, "", "explain", "shop"); got.Code != 0 || got.Err != note || !strings.HasPrefix(got.Out, "web 1.2.0\n") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "explain", "shop/"); got.Err != "" {
		t.Errorf("it is clear what is meant: %+v", got)
	}
}
