package repositories_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
)

// built writes and pushes the package web, and returns its folder below a new one.
func built(t *testing.T, host string) (root string) {
	t.Helper()
	root = clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "-- ", "-- packages/web/"))
	dir := clitest.Fixed(t, filepath.Join(root, "packages", "web"))
	if got := clitest.Invoke(t, "", "build", dir, "--push", "-t", host+"/pkg/web:v1.2.0"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	return filepath.Join(root, "packages")
}

// Folders of packages and entries become a repository, the same one each time.
func TestRepositoryBuild(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	packages := built(t, host)
	out := t.TempDir()
	list := filepath.Join(out, "entries.yaml")
	if got := clitest.Invoke(t, "", "repository", "init", list); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := clitest.Invoke(t, "", "repository", "add", list, host+"/pkg/web:v1.2.0", "v1.1.0"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	first := clitest.Invoke(t, "", "repository", "build", packages, list, "--images", host+"/pkg", "--name", "all", "-o", filepath.Join(out, "all.yaml"), "--push", host+"/repo:one")
	if first.Code != 0 || !strings.HasPrefix(first.Out, "Repository all: 1 package, 2 versions\n") {
		t.Fatalf("%+v", first)
	}
	// The same input in another order.
	second := clitest.Invoke(t, "", "repository", "build", list, packages, "--images", host+"/pkg", "--name", "all", "-o", filepath.Join(out, "again.yaml"), "--push", host+"/repo:two")
	if digestIn(first.Out) == "" || digestIn(first.Out) != digestIn(second.Out) {
		t.Errorf("the digest differs:\n%s\n%s", first.Out, second.Out)
	}
	one, err := os.ReadFile(filepath.Join(out, "all.yaml"))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(out, "again.yaml"))
	if err != nil || string(one) != string(two) {
		t.Errorf("the files differ: %v", err)
	}
	content, err := repository.Read(map[string][]byte{"all.yaml": one})
	if err != nil || len(content.Problems) > 0 || len(content.Packages) != 1 {
		t.Fatalf("%v %+v", err, content)
	}
	web := content.Packages[0]
	if web.Name != "web" || len(web.Versions) != 2 || web.Versions[1].ConfigSchema == nil || !strings.HasPrefix(web.Versions[1].Image, host+"/pkg/web@sha256:") {
		t.Errorf("got %+v", web)
	}
}

// The packages of a folder are built and pushed along with the repository.
func TestRepositoryBuildPushesPackages(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	root := clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "-- ", "-- web/"))
	clitest.Fixed(t, filepath.Join(root, "web"))
	out := filepath.Join(t.TempDir(), "all.yaml")
	args := []string{"repository", "build", root, "--images", host + "/pkg", "-o", out, "--push", host + "/repo:one"}
	first := clitest.Invoke(t, "", args...)
	if first.Code != 0 || !strings.Contains(first.Out, "Repository repo: 1 package, 1 version\n") || !strings.Contains(first.Err, "pushed "+host+"/pkg/web:v1.2.0\n") {
		t.Fatalf("%+v", first)
	}
	if got := clitest.Invoke(t, "", "validate", host+"/pkg/web:v1.2.0"); got.Code != 0 {
		t.Errorf("the package is not there: %+v", got)
	}
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	if content, err := repository.Read(map[string][]byte{"all.yaml": data}); err != nil || len(content.Problems) > 0 || len(content.Packages) != 1 {
		t.Errorf("%v %+v", err, content)
	}
	second := clitest.Invoke(t, "", args...)
	if second.Code != 0 || strings.Contains(second.Err, "pushed ") || digestIn(second.Out) != digestIn(first.Out) {
		t.Errorf("the second time: %+v", second)
	}
}

func digestIn(text string) string {
	_, rest, _ := strings.Cut(text, "digest  ")
	digest, _, _ := strings.Cut(rest, "\n")
	return digest
}

func TestRepositoryBuildRefuses(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	dir := clitest.Folder(t, clitest.GoodPackage)
	out := filepath.Join(t.TempDir(), "r.yaml")
	other := filepath.Join(t.TempDir(), "cm.yaml")
	require.NoError(t, os.WriteFile(other, []byte("apiVersion: v1\nkind: ConfigMap\n"), 0o600))
	taken := clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "default: red", "default: green"))
	if got := clitest.Invoke(t, "", "build", clitest.Fixed(t, taken), "--push", "-t", host+"/taken/web:v1.2.0"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	broken := clitest.Folder(t, clitest.BadPackage)
	builds := clitest.Folder(t, strings.ReplaceAll(strings.ReplaceAll(clitest.GoodPackage, "1.2.0", "1.2.0+a"), "-- ", "-- a/")+strings.ReplaceAll(strings.ReplaceAll(clitest.GoodPackage, "1.2.0", "1.2.0+b"), "-- ", "-- b/"))
	clitest.Fixed(t, filepath.Join(builds, "a"))
	clitest.Fixed(t, filepath.Join(builds, "b"))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no output":         {[]string{dir}, "the output is missing"},
		"no input":          {[]string{"-o", out}, "FOLDER or FILE is missing"},
		"no image is named": {[]string{dir, "-o", out}, "add --images HOST/PATH, for HOST/PATH/web:v1.2.0"},
		"other files":       {[]string{dir, "-o", out, "--images", host + "/taken"}, host + "/taken/web:v1.2.0 exists with other files than " + dir + ": raise spec.version"},
		"build metadata":    {[]string{builds, "-o", out, "--images", host + "/builds"}, "already as 1.2.0+a, and build metadata does not tell versions apart"},
		"not a package":     {[]string{broken, "-o", out, "--images", host}, "1 problem in " + broken},
		"another object":    {[]string{other, "-o", out}, "v1 ConfigMap does not belong in a repository"},
		"no file":           {[]string{"none.yaml", "-o", out}, "there is no file or folder none.yaml"},
		"no files in it":    {[]string{t.TempDir(), "-o", out}, "there is nothing to offer"},
	} {
		got := clitest.Invoke(t, "", append([]string{"repository", "build"}, test.args...)...)
		if got.Code != 1 || !strings.Contains(got.Err, test.want) {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	require.Contains(t, clitest.Invoke(t, "", "validate", host+"/builds/web:v1.2.0_a").Err, "image not found", "a package of a repository that cannot be built was pushed")
}

func TestRepository(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
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
	require.Contains(t, read(file), "kind: Repository\nmetadata:\n  name: shop\n")
	ok("repository", "add", file, host+"/web:v1", "v1.0.0")
	ok("repository", "add", file, host+"/web:v1", "1.0.1")
	ok("repository", "add", file, host+"/web:v2", "v2.0.0", "v2.1.0")
	for _, version := range []string{"v1.0.0", "v1.0.1", "v2.0.0", "v2.1.0"} {
		require.Contains(t, read(file), "- "+version+"\n")
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

	imagetest.PushRandom(t, host+"/nothing:v1")
	other := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(other, []byte("a: b\n"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"overwrite":         {[]string{"init", other}, "exists and is not a repository"},
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
	require.Equal(t, "a: b\n", read(other), "a file that is not a repository was overwritten")
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
