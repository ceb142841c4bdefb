package repositories_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/clitest"
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

// Folders of packages, entries and Carvel's documents become a repository, the same one each time.
func TestRepositoryBuild(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	packages := built(t, host)
	out := t.TempDir()
	list := filepath.Join(out, "entries.yaml")
	if got := clitest.Invoke(t, "", "repository", "init", list); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := clitest.Invoke(t, "", "repository", "add", list, host+"/pkg/web:v1.2.0", "v1.1.0"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	file := filepath.Join(out, "till.yml")
	require.NoError(t, os.WriteFile(file, []byte(clitest.CarvelDocuments), 0o600))
	args := []string{"repository", "build", packages, list, file, "--images", host + "/pkg", "--name", "all"}
	first := clitest.Invoke(t, "", append(args, "-o", filepath.Join(out, "all.yaml"), "--push", host+"/repo:one")...)
	if first.Code != 0 || !strings.HasPrefix(first.Out, "Repository all: 2 packages, 3 versions\n") {
		t.Fatalf("%+v", first)
	}
	// The same input in another order.
	second := clitest.Invoke(t, "", "repository", "build", file, list, packages, "--images", host+"/pkg", "--name", "all", "-o", filepath.Join(out, "again.yaml"), "--push", host+"/repo:two")
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
	if err != nil || len(content.Problems) > 0 || len(content.Packages) != 2 {
		t.Fatalf("%v %+v", err, content)
	}
	web := content.Packages[1]
	if web.Name != "web" || len(web.Versions) != 2 || web.Versions[1].ConfigSchema == nil || !strings.HasPrefix(web.Versions[1].Image, host+"/pkg/web@sha256:") {
		t.Errorf("got %+v", web)
	}
	for _, ending := range []string{".tar", ".tgz"} {
		var sizes []int
		for _, name := range []string{"a" + ending, "b" + ending} {
			if got := clitest.Invoke(t, "", append(args, "-o", filepath.Join(out, name))...); got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			data, err := os.ReadFile(filepath.Join(out, name))
			if err != nil || len(data) == 0 {
				t.Fatal(err)
			}
			sizes = append(sizes, len(data))
		}
		if sizes[0] != sizes[1] {
			t.Errorf("%s: %v", ending, sizes)
		}
	}
}

const unusable = `---
apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: till.tools.example.com.2.0.0}
spec:
  refName: till.tools.example.com
  version: 2.0.0
  releasedAt: yesterday
  template: {spec: {fetch: [{inline: {paths: {a.yaml: "{}"}}}], template: [], deploy: [{kapp: {}}]}}
`

// The packages of a folder are built and pushed along with the repository. Content that cannot be
// offered is named by its file, and the rest is offered.
func TestRepositoryBuildPushesPackages(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	root := clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "-- ", "-- web/"))
	clitest.Fixed(t, filepath.Join(root, "web"))
	input := filepath.Join(root, "till.yaml")
	require.NoError(t, os.WriteFile(input, []byte(clitest.CarvelDocuments+unusable), 0o600))
	out := filepath.Join(t.TempDir(), "all.yaml")
	args := []string{"repository", "build", root, "--images", host + "/pkg", "-o", out, "--push", host + "/repo:one"}
	first := clitest.Invoke(t, "", args...)
	if first.Code != 0 || !strings.Contains(first.Out, "Repository repo: 2 packages, 2 versions\n") || !strings.Contains(first.Err, "pushed "+host+"/pkg/web:v1.2.0\n") ||
		!strings.Contains(first.Err, "warning: Repository invalid in "+input+" idx 2 line ") || !strings.Contains(first.Err, `"yesterday" is not a date`) {
		t.Fatalf("%+v", first)
	}
	if got := clitest.Invoke(t, "", "validate", host+"/pkg/web:v1.2.0"); got.Code != 0 {
		t.Errorf("the package is not there: %+v", got)
	}
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	if content, err := repository.Read(map[string][]byte{"all.yaml": data}); err != nil || len(content.Problems) > 0 || len(content.Packages) != 2 {
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
	host := clitest.ServeRegistry(t)
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
	strange := clitest.ValuesFile(t, strings.TrimPrefix(unusable, "---\n"))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no output":         {[]string{dir}, "there is no output"},
		"no input":          {[]string{"-o", out}, "FOLDER or FILE is missing"},
		"another form":      {[]string{dir, "-o", "a.zip"}, "must end with .yaml"},
		"no image is named": {[]string{dir, "-o", out}, "add --images HOST/PATH, for HOST/PATH/web:v1.2.0"},
		"other files":       {[]string{dir, "-o", out, "--images", host + "/taken"}, host + "/taken/web:v1.2.0 exists with other files than " + dir + ": raise spec.version"},
		"build metadata":    {[]string{builds, "-o", out, "--images", host + "/builds"}, "already as 1.2.0+a, and build metadata does not tell versions apart"},
		"not a package":     {[]string{broken, "-o", out, "--images", host}, "1 problem in " + broken},
		"no usable version": {[]string{strange, "-o", out}, "nothing in the repository can be used; the first problem: Repository invalid in " + strange + " idx 0 line "},
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
	if got := clitest.Invoke(t, "", "validate", host+"/builds/web:v1.2.0_a"); !strings.Contains(got.Err, "image not found") {
		t.Errorf("a package of a repository that cannot be built was pushed: %+v", got)
	}
}
