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
