package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/ui"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
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
