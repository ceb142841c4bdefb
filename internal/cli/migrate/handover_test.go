package migrate_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

func TestHandoverArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		err  string
	}{
		{[]string{"adopt", "cm/a"}, "--into is missing: name the package"},
		{[]string{"adopt", "--into", "web"}, "KIND/NAME is missing"},
		{[]string{"adopt", "web", "--into", "web"}, `"web" is not an object: write KIND/NAME, such as deployment/web`},
		{[]string{"adopt", "cm/a", "--into", "deployment/web"}, `"deployment" is not a kind of package`},
		{[]string{"adopt", "cm/a", "--into", "web", "--timeout", "0s"}, "--timeout must be positive"},
		{[]string{"adopt", "--from-helm", "web"}, "--into is missing: name the package"},
		{[]string{"adopt", "--from-helm", "a,b", "--into", "web"}, `--from-helm "a,b" cannot be a name`},
		{[]string{"release"}, "KIND/NAME is missing"},
		{[]string{"release", "a/cm/a/b"}, `"a/cm/a/b" is not an object: write KIND/NAME`},
	} {
		got := clitest.Invoke(t, "", tc.args...)
		if got.Code != 1 || !strings.HasPrefix(got.Err, "Error: arguments invalid: ") || !strings.Contains(got.Err, tc.err) {
			t.Errorf("%s: exit code %d: %s", strings.Join(tc.args, " "), got.Code, got.Err)
		}
	}
}
