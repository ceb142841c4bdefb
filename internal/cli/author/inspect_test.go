package author_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	got := clitest.Invoke(t, "", "inspect", dir)
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
		if got := clitest.Invoke(t, "", append([]string{"inspect", dir}, args...)...); got.Code != 0 || got.Out != want {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
	for want, args := range map[string][]string{
		"2 problems in ": {clitest.Folder(t, clitest.BadPackage)},
		"arguments invalid: --cluster and --namespace contradict each other": {dir, "--cluster", "-n", "x"},
		`unknown output format "xml"`:                                        {dir, "-o", "xml"},
		"there is no folder ":                                                {dir + "/nope"},
		"--tree and --values have no -o and --query":                         {dir, "--tree", "-o", "json"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"inspect"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

func TestInspectValues(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	if got := clitest.Invoke(t, "", "inspect", dir, "--values"); got != (clitest.Result{Code: 0, Out: "# string\ncolor: red\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "inspect", dir, "--values", "--component", "x"); got.Code != 1 || !strings.Contains(got.Err, " has no component x") {
		t.Errorf("got %+v", got)
	}
}
