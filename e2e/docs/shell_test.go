package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// registryName is the name of the sandbox's registry in the pages.
const registryName = "registry.example"

// shell runs the commands of one page, one after the other, in one folder with
// one environment.
type shell struct {
	env    *harness.Env
	dir    string
	state  string
	update bool
}

func newShell(t *testing.T, env *harness.Env) *shell {
	t.Helper()
	dir := t.TempDir()
	s := &shell{env: env, dir: filepath.Join(dir, "work"), state: filepath.Join(dir, "state"), update: os.Getenv("LOCKSTEP_UPDATE") != ""}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{s.dir, bin} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	s.write(t, filepath.Join(bin, "kubectl-package"), s.plugin(t), 0o755)
	self, err := os.Executable()
	require.NoError(t, err)
	s.write(t, filepath.Join(bin, "jq"), fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", jqVariable, self), 0o755)
	assets := filepath.Dir(os.Getenv("LOCKSTEP_SANDBOX"))
	require.NoError(t, os.Symlink(filepath.Join(assets, "kubectl"), filepath.Join(bin, "kubectl")))
	// Pages run commands on these folders from the repository's root.
	for _, name := range []string{"examples", "config"} {
		at, err := filepath.Abs("../../" + name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(at, filepath.Join(s.dir, name)))
	}
	s.write(t, s.state, fmt.Sprintf("export PATH=%q:$PATH KUBECONFIG=%q HOME=%q TERM=dumb\ncd %q\n", bin, env.Kubeconfig(), dir, s.dir), 0o644)
	return s
}

// plugin is a kubectl-package that knows that the sandbox's registry has no TLS,
// which a reader's has.
func (s *shell) plugin(t *testing.T) string {
	t.Helper()
	program := harness.Binary(t, "kubectl-package")
	return fmt.Sprintf(`#!/bin/sh
if %[1]q "$@" --help 2>/dev/null | grep -q -- --insecure-registry; then
	exec %[1]q "$@" --insecure-registry %[2]q
fi
exec %[1]q "$@"
`, program, s.env.Registry())
}

func (s *shell) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

// file writes a file that a page shows.
func (s *shell) file(t *testing.T, name, text string) {
	t.Helper()
	s.write(t, filepath.Join(s.dir, filepath.FromSlash(name)), strings.ReplaceAll(text, registryName, s.env.Registry()), 0o644)
}

// run runs a command and returns its output and exit code.
func (s *shell) run(t *testing.T, command string) (output []string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	script := fmt.Sprintf(". %[1]q\n%[2]s\ncode=$?\n{ export -p; echo \"cd '$PWD'\"; } >%[1]q\nexit $code\n",
		s.state, strings.ReplaceAll(command, registryName, s.env.Registry()))
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	}
	text := strings.ReplaceAll(string(out), s.env.Registry(), registryName)
	text = strings.ReplaceAll(text, s.dir+"/", "")
	if text = strings.TrimRight(text, "\n"); text != "" {
		output = strings.Split(text, "\n")
	}
	return output, cmd.ProcessState.ExitCode()
}
