package repositories_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/require"
)

func TestRepository(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	ok := func(args ...string) {
		t.Helper()
		if got := clitest.Invoke(t, "", append(args, "--insecure")...); got.Code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(data)
	}
	for _, v := range []string{"v1", "v2"} {
		text := strings.Replace(clitest.GoodPackage, "version: 1.2.0", "version: 1.2.0\n  provider: "+v, 1)
		ok("build", clitest.Folder(t, text), "--push", "-t", host+"/web:"+v)
	}
	if got := clitest.Invoke(t, "", "repository", "init", file); got != (clitest.Result{}) {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(read(file), "kind: Repository\nmetadata:\n  name: shop\n") {
		t.Errorf("got %s", read(file))
	}
	ok("repository", "add", file, host+"/web:v1", "v1.0.0")
	ok("repository", "add", file, host+"/web:v1", "1.0.1")
	ok("repository", "add", file, host+"/web:v2", "v2.0.0", "v2.1.0")
	for _, version := range []string{"v1.0.0", "v1.0.1", "v2.0.0", "v2.1.0"} {
		if !strings.Contains(read(file), "- "+version+"\n") {
			t.Errorf("%s is missing in %s", version, read(file))
		}
	}
	ok("repository", "push", file, host+"/repo:v1")
	pulled := filepath.Join(t.TempDir(), "pulled.yaml")
	ok("repository", "pull", pulled, host+"/repo:v1")
	if read(pulled) != read(file) {
		t.Errorf("the pulled package differs:\n%s", read(pulled))
	}
	dependent := strings.Replace(clitest.GoodPackage, "  scopes:", "  repositories:\n  - image: "+host+"/repo:v1\n  dependencies:\n  - image: {name: web, package: web.shop, range: ^2}\n  scopes:", 1)
	dir := clitest.Folder(t, dependent)
	ok("update", dir)
	if lock := read(filepath.Join(dir, "manifest.lock.yaml")); !strings.Contains(lock, "version: v2.1.0") || !strings.Contains(lock, "image: "+host+"/web\n") {
		t.Errorf("got %s", lock)
	}
	ok("validate", dir)
	ok("repository", "remove", file, host+"/web:v2")
	if text := read(file); strings.Contains(text, "v2.0.0") || !strings.Contains(text, "v1.0.0") {
		t.Errorf("got %s", text)
	}

	clitest.PushRandom(t, host+"/nothing:v1")
	other := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(other, []byte("a: b\n"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"overwrite":         {[]string{"init", other}, "exists and is not a repository"},
		"two names":         {[]string{"init", other, "shop", "--name", "store"}, "contradict each other"},
		"bad second name":   {[]string{"init", other, "Shop"}, "cannot be the name of a repository"},
		"bad name":          {[]string{"init", "Shop.yaml"}, "cannot be the name of a repository"},
		"no file":           {[]string{"add", "nope.yaml", host + "/web:v1", "v1.0.0"}, "there is no repository file nope.yaml: create one with"},
		"no version":        {[]string{"add", file, host + "/web:v1"}, "VERSION is missing"},
		"bad version":       {[]string{"add", file, host + "/web:v1", "one"}, `"one" is not a semantic version`},
		"bad image":         {[]string{"add", file, "a b", "v1.0.0"}, `IMAGE "a b" is not a valid image reference`},
		"no image":          {[]string{"add", file, host + "/nope:v1", "v1.0.0"}, "image not found"},
		"no package":        {[]string{"add", file, host + "/nothing:v1", "v1.0.0"}, "is not a usable package: 1 problem"},
		"not a repository":  {[]string{"pull", pulled, host + "/web:v1"}, "holds no repository: there is no /repository/repository.yaml in it"},
		"pull nothing":      {[]string{"pull", pulled, host + "/nope:v1"}, "image not found"},
		"taken version":     {[]string{"add", file, host + "/web:v2", "v1.0.0"}, "version 1.0.0 of web is offered by "},
		"remove none":       {[]string{"remove", file, host + "/nope:v1"}, "image not found"},
		"remove other":      {[]string{"remove", file, host + "/nothing:v1"}, "does not offer " + host + "/nothing@sha256:"},
		"push other":        {[]string{"push", other, host + "/repo:v2"}, "the repository cannot be used"},
		"push bad tag":      {[]string{"push", file, "a b"}, "invalid tag specified as parameter"},
		"missing arguments": {[]string{"push", file}, "TAG is missing"},
		"unknown command":   {[]string{"bogus"}, `unknown command "bogus"`},
	} {
		args := append([]string{"repository"}, tc.args...)
		if tc.args[0] != "init" && tc.args[0] != "bogus" {
			args = append(args, "--insecure")
		}
		got := clitest.Invoke(t, "", args...)
		if got.Code != 1 || !strings.Contains(got.Err, tc.want) || got.Out != "" {
			t.Errorf("%s: got %+v, want %q", name, got, tc.want)
		}
	}
	if read(other) != "a: b\n" {
		t.Error("a file that is not a repository was overwritten")
	}
}

func TestPushUnauthorized(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if got := clitest.Invoke(t, "", "repository", "init", file, "store"); got.Code != 0 {
		t.Fatal(got)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "name: store\n") {
		t.Errorf("%v, %s", err, data)
	}
	got := clitest.Invoke(t, "", "repository", "push", file, host+"/repo:v1", "--insecure")
	if got.Code != 1 || !strings.Contains(got.Err, "401") || !strings.Contains(got.Err, "Log in with docker login") {
		t.Errorf("got %+v", got)
	}
}
