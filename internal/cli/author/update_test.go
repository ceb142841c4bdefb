package author_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
)

func withImages(host string) string {
	return strings.Replace(clitest.GoodPackage, "  scopes:", "  images:\n  - name: web\n    image: "+host+"/web:v1\n  scopes:", 1)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	digest := imagetest.PushRandom(t, host+"/web:v1")
	dir := clitest.Folder(t, withImages(host))
	lock := filepath.Join(dir, "manifest.lock.yaml")

	if got := clitest.Invoke(t, "", "validate", dir); got.Code != 1 || !strings.Contains(got.Err, "Run kubectl package update.") {
		t.Errorf("before: %+v", got)
	}
	got := clitest.Invoke(t, "", "update", dir, "--registry-ca-file", clitest.Authority(t))
	if got.Code != 1 || !strings.Contains(got.Err, "(here with --insecure-registry)") {
		t.Errorf("plain HTTP: %+v", got)
	}
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("a lock was written: %v", err)
	}
	if got := clitest.Invoke(t, "", "update", dir); got != (clitest.Result{Code: 0, Out: "Package updated successfully!\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
	data, err := os.ReadFile(lock)
	if err != nil || !strings.Contains(string(data), digest) || !strings.Contains(string(data), host+"/web:v1") {
		t.Errorf("%v, %s", err, data)
	}
	before, err := os.Stat(lock)
	require.NoError(t, err)
	if got := clitest.Invoke(t, "", "update", dir, "--insecure-registry", host); got != (clitest.Result{Code: 0, Out: "Package is already up-to-date\n", Err: ""}) {
		t.Errorf("again: %+v", got)
	}
	after, err := os.Stat(lock)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the lock was written again: %v", err)
	}
	if got := clitest.Invoke(t, "", "validate", dir); got.Code != 0 {
		t.Errorf("after: %+v", got)
	}
	imagetest.PushRandom(t, host+"/web:v1")
	if got := clitest.Invoke(t, "", "update", dir, "--insecure"); got.Out != "Package updated successfully!\n" {
		t.Errorf("the tag moved: %+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".kubectl-package-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The environment can name a registry that replaces all others. The lock still names images as the
// manifest does.
func TestUpdateAtAnotherRegistry(t *testing.T) {
	host := imagetest.ServeRegistry(t)
	digest := imagetest.PushRandom(t, host+"/web:v1")
	dir := clitest.Folder(t, withImages("registry.example.com"))
	t.Setenv("PKO_REPOSITORY_HOST", host)
	if got := clitest.Invoke(t, "", "update", dir, "--insecure"); got.Code != 0 {
		t.Fatalf("got %+v", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, "manifest.lock.yaml"))
	if err != nil || !strings.Contains(string(data), digest) || !strings.Contains(string(data), "image: registry.example.com/web:v1") {
		t.Errorf("%v, %s", err, data)
	}
	t.Setenv("PKO_REPOSITORY_HOST", "a b")
	if got := clitest.Invoke(t, "", "update", dir); got.Code != 1 || !strings.Contains(got.Err, `PKO_REPOSITORY_HOST="a b" is not a registry`) {
		t.Errorf("got %+v", got)
	}
}

func TestUpdateErrors(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no source":       {nil, "arguments invalid: SOURCE is missing"},
		"no folder":       {[]string{"nope"}, "there is no folder nope"},
		"no image":        {[]string{clitest.Folder(t, withImages(host)), "--insecure"}, `resolving image digest: image "web": pull image "` + host + `/web:v1": image not found`},
		"no package":      {[]string{clitest.Folder(t, "-- a.yaml\n")}, "PackageManifest not found"},
		"invalid package": {[]string{clitest.Folder(t, clitest.BadPackage)}, "nothing was written"},
	} {
		got := clitest.Invoke(t, "", append([]string{"update"}, tc.args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, tc.want) || got.Out != "" {
			t.Errorf("%s: got %+v, want %q", name, got, tc.want)
		}
	}
}

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
		"exists and is not an empty folder":                                  {"x/../update_test.go", "--name", "a"},
		"cannot be the name of a package":                                    {".."},
	} {
		if got := clitest.Invoke(t, "", append([]string{"init"}, args...)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %s", args, got, want)
		}
	}
}
