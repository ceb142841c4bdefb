package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
)

// Command lines of Package Operator work, and programs that read standard output see no difference.
func TestPackageOperatorNames(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	for _, test := range []struct {
		line, out, err string
	}{
		{"repo initialize FILE shop", "", ""},
		{"repo add FILE", "", "IMAGE is missing: this offers an image in a file"},
		{"repo remove FILE", "", "IMAGE is missing"},
		{"repo push FILE", "", "TAG is missing"},
		{"repo pull FILE", "", "TAG is missing"},
		{"clustertree --help", "kubectl package clustertree NAME", ""},
		{"tree", "", "SOURCE|IMAGE is missing"},
	} {
		args := strings.Fields(strings.ReplaceAll(test.line, "FILE", file))
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t)), "", args...)
		if !strings.Contains(got.Out, test.out) || !strings.Contains(got.Err, test.err) || (got.Err == "") != (test.err == "") {
			t.Errorf("%s: %+v", test.line, got)
		}
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "kind: Repository") {
		t.Errorf("repo initialize wrote %q, %v", data, err)
	}
}

// inspect prints the same tree of folders and images as tree.
func TestTree(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	for line, now := range map[string][]string{
		"tree SOURCE":                           {"inspect", dir, "--tree"},
		"tree --cluster SOURCE":                 {"inspect", dir, "--tree", "--cluster"},
		"tree SOURCE --config-testcase cluster": {"inspect", dir, "--tree", "--config-testcase", "cluster"},
		"tree SOURCE/nope":                      {"inspect", dir + "/nope", "--tree"},
	} {
		got, want := clitest.Invoke(t, "", strings.Fields(strings.ReplaceAll(line, "SOURCE", dir))...), clitest.Invoke(t, "", now...)
		if got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}
