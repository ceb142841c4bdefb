package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/ui"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

func TestUnreachable(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nope")
	t.Setenv("KUBECONFIG", missing)
	t.Setenv("HOME", t.TempDir())
	got := clitest.InvokeOn(t, cluster.Connect, "", "status", "a", "--server", "https://127.0.0.1:1")
	if got.Code != 1 || !strings.Contains(got.Err, "the cluster at https://127.0.0.1:1 cannot be reached: ") {
		t.Errorf("got %+v", got)
	}
	got = clitest.InvokeOn(t, cluster.Connect, "", "status", "a")
	if want := ": no kubeconfig was found at KUBECONFIG=" + missing + ". Set it to an existing file, or set --kubeconfig\n"; got.Code != 1 ||
		!strings.HasSuffix(got.Err, want) || strings.Contains(got.Err, "localhost") {
		t.Errorf("got %+v", got)
	}
	got = clitest.InvokeOn(t, cluster.Connect, "", "status", "a", "--kubeconfig", "/nope")
	if got.Code != 1 || got.Err != "Error: the kubeconfig cannot be read: stat /nope: no such file or directory. Check --kubeconfig and KUBECONFIG\n" {
		t.Errorf("got %+v", got)
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	if got := clitest.Invoke(t, ""); got.Code != 0 || !strings.Contains(got.Out, "kubectl package [command]") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "--version"); got.Code != 0 || !strings.HasPrefix(got.Out, "kubectl-package ") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "bogus"); got != (clitest.Result{Code: 1, Out: "", Err: "Error: arguments invalid: unknown command \"bogus\". See: kubectl package --help\n"}) {
		t.Errorf("got %+v", got)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, clustertest.Installed(clustertest.Available()))), "", "__complete", "status", "w")
	if !strings.HasPrefix(got.Out, "web\n:4\n") {
		t.Errorf("got %+v", got)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got := clitest.Invoke(t, "", "version"); got.Code != 0 || !strings.HasPrefix(got.Out, "kubectl-package\t") || !strings.Contains(got.Out, "\ngo\tgo1.") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "version", "-o", "json", "|jq", ".go"); got.Code != 0 || !strings.HasPrefix(got.Out, "go1.") {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "version", "--bogus"); got.Code != 1 || !strings.Contains(got.Err, "unknown flag: --bogus") {
		t.Errorf("got %+v", got)
	}
}

// Details belong in docs/.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	const most = 120
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if n := len(strings.Fields(cmd.Long)); n > most {
			t.Errorf("the help of %s has %d words, more than %d", cmd.CommandPath(), n, most)
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(cli.Tree(ui.Commands))
}

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
		require.Equal(t, want, got, line)
	}
}

func TestWordsOfOtherTools(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"search shop":                               "Did you mean kubectl package available?",
		"-n shop search shop":                       "Did you mean kubectl package available?",
		"history shop -n shop":                      "Did you mean kubectl package rollout?",
		"rollback shop 1 -n shop":                   "Did you mean kubectl package rollout?",
		"installed list -A":                         " or list?",
		"get shop":                                  " or status?",
		"template shop":                             "Did you mean kubectl package render?",
		"diff shop -n shop":                         "Did you mean kubectl package plan?",
		"repo kick stable -n shop":                  "Did you mean kubectl package repo update?",
		"repository add stable https://example.com": "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable":                     "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable --url example.com/r": "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable example.com/r -n a":  "kubectl package repo add NAME IMAGE, or --http URL",
		"repository list -n shop":                   `unknown command "list". See: kubectl package repository --help`,
		"instal shop":                               `unknown command "instal". Did you mean kubectl package install? See: kubectl package --help`,
		"-n shop instal shop":                       "Did you mean kubectl package install?",
		"rollout histroy shop":                      "Did you mean kubectl package rollout history?",
		"bogus":                                     `arguments invalid: unknown command "bogus". See: kubectl package --help`,
		"repo bogus -n shop":                        `unknown command "bogus". See: kubectl package repo --help`,
	} {
		got := clitest.Invoke(t, "", strings.Fields(line)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Contains(got.Err, "unknown shorthand") || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
	for _, line := range []string{"help", "help install", "completion bash", "__complete install", "--help", "repository --help", "uninstall --help", "-h"} {
		if got := clitest.Invoke(t, "", strings.Fields(line)...); got.Code != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
