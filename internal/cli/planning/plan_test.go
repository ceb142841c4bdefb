package planning_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

func TestPlanArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "SOURCE|IMAGE is missing"},
		{[]string{"example.com/a:v1", "b", "c"}, `unexpected argument "c"`},
		{[]string{"example.com/a:v1", "pod/b"}, `"pod" is not a kind of package`},
		{[]string{"example.com/a:v1", "package/b", "--cluster"}, "package/b and --cluster contradict each other"},
		{[]string{"Not An Image"}, "is neither a folder nor an image reference"},
		{[]string{"example.com/a:v1", "--version", "1"}, "--version and --prereleases choose from the offers of repositories, but example.com/a:v1 is an image"},
		{[]string{"a.example.com/1.0.0", "--version", "2.0.0"}, "a.example.com/1.0.0 and --version 2.0.0 contradict each other"},
		{[]string{"a.example.com", "--values", "a.yaml", "--config", "b.yaml"}, "--values and --config contradict each other"},
		{[]string{"./", "--version", "1"}, "is a folder"},
		{[]string{"shop.example.com:1.0.0"}, "names no registry: write an image in full"},
		{[]string{"example.com/a:v1", "-o", "xml"}, `unknown output format "xml"`},
	} {
		got := clitest.Invoke(t, "", append([]string{"plan"}, tc.args...)...)
		if got.Code != 1 || !strings.HasPrefix(got.Err, "Error: arguments invalid: ") || !strings.Contains(got.Err, tc.want) || got.Out != "" {
			t.Errorf("%q: %d, %s%s", tc.args, got.Code, got.Out, got.Err)
		}
	}
}
