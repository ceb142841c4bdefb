package author_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
)

func withImages(host string) string {
	return strings.Replace(clitest.GoodPackage, "  scopes:", "  images:\n  - name: web\n    image: "+host+"/web:v1\n  scopes:", 1)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	digest := clitest.PushRandom(t, host+"/web:v1")
	dir := clitest.Folder(t, withImages(host))
	lock := filepath.Join(dir, "manifest.lock.yaml")

	if got := clitest.Invoke(t, "", "validate", dir); got.Code != 1 || !strings.Contains(got.Err, "Run kubectl package update.") {
		t.Errorf("before: %+v", got)
	}
	got := clitest.Invoke(t, "", "update", dir, "--registry-ca-file", clitest.Authority(t))
	if got.Code != 1 || !strings.Contains(got.Err, "(here by --insecure-registry)") {
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
	if err != nil {
		t.Fatal(err)
	}
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
	clitest.PushRandom(t, host+"/web:v1")
	if got := clitest.Invoke(t, "", "update", dir, "--insecure"); got.Out != "Package updated successfully!\n" {
		t.Errorf("the tag moved: %+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".kubectl-package-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The environment may name a registry that stands in for all others; the lock
// names images as the manifest does.
func TestUpdateAtAnotherRegistry(t *testing.T) {
	host := clitest.ServeRegistry(t)
	digest := clitest.PushRandom(t, host+"/web:v1")
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
	if got := clitest.Invoke(t, "", "update", dir); got.Code != 1 || !strings.Contains(got.Err, `PKO_REPOSITORY_HOST="a b" is no registry`) {
		t.Errorf("got %+v", got)
	}
}

func TestUpdateErrors(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err := os.WriteFile(other, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"overwrite":         {[]string{"init", other}, "exists and is no repository"},
		"two names":         {[]string{"init", other, "shop", "--name", "store"}, "contradict each other"},
		"bad second name":   {[]string{"init", other, "Shop"}, "cannot be the name of a repository"},
		"bad name":          {[]string{"init", "Shop.yaml"}, "cannot be the name of a repository"},
		"no file":           {[]string{"add", "nope.yaml", host + "/web:v1", "v1.0.0"}, "there is no repository file nope.yaml: begin one with"},
		"no version":        {[]string{"add", file, host + "/web:v1"}, "VERSION is missing"},
		"bad version":       {[]string{"add", file, host + "/web:v1", "one"}, `"one" is no semantic version`},
		"bad image":         {[]string{"add", file, "a b", "v1.0.0"}, `IMAGE "a b" is no image reference`},
		"no image":          {[]string{"add", file, host + "/nope:v1", "v1.0.0"}, "image not found"},
		"no package":        {[]string{"add", file, host + "/nothing:v1", "v1.0.0"}, "is no package that can be used: 1 problem"},
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
		t.Error("a file that is no repository was overwritten")
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
