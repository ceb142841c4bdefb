package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInit(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--cluster"}, {"--name", "other"}} {
		dir := filepath.Join(t.TempDir(), "shop")
		got := invoke(t, "", append([]string{"init", dir}, flags...)...)
		if got.code != 0 || got.err != "" || !strings.Contains(got.out, " is in "+dir+". Next:\n  kubectl package test "+dir+"\n") {
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
			got := invoke(t, "", append([]string{test.args[0], dir}, test.args[1:]...)...)
			if got.code != 0 || got.out != test.want || got.err != "" {
				t.Errorf("%q: %q: %+v", flags, test.args, got)
			}
		}
		if got := invoke(t, "", "render", dir, "--query", `.items[] | select(.kind == "Deployment").spec.template.spec.containers[0].image`); !strings.HasPrefix(got.out, "registry.k8s.io/pause@sha256:") {
			t.Errorf("the image is not that of the lock: %+v", got)
		}
		if got := invoke(t, "", "init", dir); got.code != 1 || !strings.Contains(got.err, "exists and is not an empty folder") {
			t.Errorf("a second time: %+v", got)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := invoke(t, "", "init", empty); got.code != 0 {
		t.Errorf("an empty folder: %+v", got)
	}
	for want, args := range map[string][]string{
		"Error: arguments invalid: FOLDER is missing":                        nil,
		`Error: arguments invalid: "Shop" cannot be the name of a package: `: {"Shop"},
		`Error: arguments invalid: "a\n" cannot be the name of a package: `:  {"x", "--name", "a\n"},
		"exists and is not an empty folder":                                  {"x/../init_test.go", "--name", "a"},
		"cannot be the name of a package":                                    {".."},
	} {
		if got := invoke(t, "", append([]string{"init"}, args...)...); got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v, want %s", args, got, want)
		}
	}
}
