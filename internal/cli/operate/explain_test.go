package operate_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

func TestExplainArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"package/web and --cluster contradict each other": {"package/web", "--cluster"},
		"unknown flag: --config":                          {"package/web", "--config", "x"},
		`unknown output format "xml"`:                     {"web", "-o", "xml"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"explain"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}
