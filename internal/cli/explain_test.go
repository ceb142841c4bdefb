package cli

import (
	"strings"
	"testing"
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
	} {
		if got := invoke(t, "", append([]string{"explain"}, args...)...); got.code != 1 || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}
