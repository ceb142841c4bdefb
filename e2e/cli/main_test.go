// Package cli_test runs the command line against a real API server and manager.
package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// patience is harness.Patience as commands take it.
var patience = harness.Patience.String()

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// run runs a command line as the administrator.
func run(t *testing.T, env *harness.Env, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	for _, name := range []string{"install", "list", "status", "delete", "rollout", "pause", "unpause", "retry", "clustertree", "deps", "plan", "rbac", "repo", "available", "upgrade", "explain", "adopt", "release", "support"} {
		if args[0] == name {
			args = append(args, "--kubeconfig", env.Kubeconfig())
		}
	}
	code := cli.Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return result{code, out.String(), errOut.String()}
}

// ok is run for a command that has to succeed.
func ok(t *testing.T, env *harness.Env, args ...string) result {
	t.Helper()
	r := run(t, env, args...)
	if r.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// awaitText waits until a condition of the package's current generation contains the text.
func awaitText(t *testing.T, env *harness.Env, namespace, name, text string) {
	t.Helper()
	harness.Eventually(t, harness.Patience, name+" to say "+text, func(context.Context) error {
		pkg := env.Package(t, namespace, name)
		for _, c := range *pkg.StatusConditions() {
			if c.ObservedGeneration == pkg.GetGeneration() && strings.Contains(c.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", *pkg.StatusConditions())
	})
}
