package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/cluster/clustertest"
)

// Command lines of earlier releases go on working, and programs that read standard output notice nothing.
func TestOldNames(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	for _, test := range []struct {
		line, out, err string
	}{
		{"source list", "", "There is no repository. Add one: kubectl package repo add NAME IMAGE\n"},
		{"source add --help", "kubectl package repo add NAME [IMAGE]", ""},
		{"repo init FILE shop", "", ""},
		{"repo init FILE", "", ""},
		{"repo add FILE", "", "IMAGE is missing: this offers an image in a file"},
		{"repo remove FILE", "", "IMAGE is missing"},
		{"repo push FILE", "", "TAG is missing"},
		{"repo pull FILE", "", "TAG is missing"},
		{"clustertree --help", "kubectl package clustertree NAME", ""},
		{"tree", "", "No package is installed in namespace shop.\n"},
		{"why --help", "deps NAME", ""},
		{"repo build --help", "kubectl package repository build", ""},
	} {
		args := strings.Fields(strings.ReplaceAll(test.line, "FILE", file))
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t)), "", args...)
		if !strings.Contains(got.Out, test.out) || !strings.Contains(got.Err, test.err) || (got.Err == "") != (test.err == "") {
			t.Errorf("%s: %+v", test.line, got)
		}
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "kind: Repository") {
		t.Errorf("repo init wrote %q, %v", data, err)
	}
}

// What explain, tree and values said of folders and images, inspect says.
func TestOldNamesOfInspect(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	for old, now := range map[string][]string{
		"explain SOURCE":                        {"inspect", dir},
		"explain -n lab SOURCE":                 {"inspect", dir, "-n", "lab"},
		"explain SOURCE -o json":                {"inspect", dir, "-o", "json"},
		"explain --kubeconfig none SOURCE":      {"inspect", dir},
		"values SOURCE":                         {"inspect", dir, "--values"},
		"values SOURCE --component x":           {"inspect", dir, "--values", "--component", "x"},
		"values localhost:1/x:v1":               {"inspect", "localhost:1/x:v1", "--values"},
		"tree SOURCE":                           {"inspect", dir, "--tree"},
		"tree --cluster SOURCE":                 {"inspect", dir, "--tree", "--cluster"},
		"tree SOURCE --config-testcase cluster": {"inspect", dir, "--tree", "--config-testcase", "cluster"},
		"tree SOURCE/nope":                      {"inspect", dir + "/nope", "--tree"},
		"explain --pull localhost:1/x:v1":       {"inspect", "--pull", "localhost:1/x:v1"},
	} {
		got, want := clitest.Invoke(t, "", strings.Fields(strings.ReplaceAll(old, "SOURCE", dir))...), clitest.Invoke(t, "", now...)
		if got != want {
			t.Errorf("%s: %+v, want %+v", old, got, want)
		}
	}
}

// A folder may have the name of an installed package: it counts if it has a manifest, and
// a note says so.
func TestOldNamesBesideAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"web", "shop"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS("shop", os.DirFS(clitest.Folder(t, clitest.GoodPackage))); err != nil {
		t.Fatal(err)
	}
	const note = "note: this is about the folder shop; of an installed package: kubectl package explain package/shop or clusterpackage/shop\n"
	if got := clitest.Invoke(t, "", "explain", "shop"); got.Code != 0 || got.Err != note || !strings.HasPrefix(got.Out, "web 1.2.0\n") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "explain", "shop/"); got.Err != "" {
		t.Errorf("it is unambiguous: %+v", got)
	}
	got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t)), "", "explain", "web")
	if !strings.Contains(got.Err, "there is neither a package web in namespace shop nor") {
		t.Errorf("a folder that is no package hides one that is installed: %+v", got)
	}
}
