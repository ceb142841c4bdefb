package author_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/require"
)

func TestInit(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--cluster"}, {"--name", "other"}} {
		dir := filepath.Join(t.TempDir(), "shop")
		got := clitest.Invoke(t, "", append([]string{"init", dir}, flags...)...)
		if got.Code != 0 || got.Err != "" || !strings.Contains(got.Out, " is in "+dir+". Next:\n  kubectl package test "+dir+"\n") {
			t.Fatalf("%q: %+v", flags, got)
		}
		for _, test := range []struct {
			want string
			args []string
		}{
			{"Package validated successfully!\n", []string{"validate"}},
			{"✓ defaults  passed\n✓ debug  passed\n", []string{"test"}},
			{"nothing found\n", []string{"lint", "--fail-on", "info"}},
		} {
			got := clitest.Invoke(t, "", append([]string{test.args[0], dir}, test.args[1:]...)...)
			if got.Code != 0 || got.Out != test.want || got.Err != "" {
				t.Errorf("%q: %q: %+v", flags, test.args, got)
			}
		}
		if got := clitest.Invoke(t, "", "render", dir, "-o", "json", "|jq", `.items[] | select(.kind == "Deployment").spec.template.spec.containers[0].image`); !strings.HasPrefix(got.Out, "registry.k8s.io/pause@sha256:") {
			t.Errorf("the image is not that of the lock: %+v", got)
		}
		if got := clitest.Invoke(t, "", "init", dir); got.Code != 1 || !strings.Contains(got.Err, "exists and is not an empty folder") {
			t.Errorf("a second time: %+v", got)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	if got := clitest.Invoke(t, "", "init", empty); got.Code != 0 {
		t.Errorf("an empty folder: %+v", got)
	}
	for want, args := range map[string][]string{
		"Error: arguments invalid: FOLDER is missing":                        nil,
		`Error: arguments invalid: "Shop" cannot be the name of a package: `: {"Shop"},
		`Error: arguments invalid: "a\n" cannot be the name of a package: `:  {"x", "--name", "a\n"},
		"exists and is not an empty folder":                                  {"x/../init_test.go", "--name", "a"},
		"cannot be the name of a package":                                    {".."},
	} {
		if got := clitest.Invoke(t, "", append([]string{"init"}, args...)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %s", args, got, want)
		}
	}
}
