package rollout_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli"
)

// clusterPackages are the ClusterPackages of tests without a namespace, by test.
var clusterPackages = map[string]string{"homeless": "homeless"}

// explain runs kubectl package explain in this process.
func explain(t *testing.T, namespace string, flags ...string) string {
	t.Helper()
	env := harness.Shared(t)
	var out, errOut bytes.Buffer
	args := []string{"explain", "package/shop", "-n", namespace, "--kubeconfig", env.Kubeconfig()}
	if name, is := clusterPackages[namespace]; is {
		args = []string{"explain", "clusterpackage/" + name, "--kubeconfig", env.Kubeconfig()}
	}
	args = append(args, flags...)
	code := cli.Run(t.Context(), args,
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	return out.String()
}

// awaitCause explains the package until the first three lines hold all texts, and
// compares the whole with a file.
func awaitCause(t *testing.T, namespace string, texts ...string) {
	t.Helper()
	var out string
	// Progressing is reported a moment after the object that blocks.
	recorded, _ := os.ReadFile(filepath.Join("testdata", namespace+".txt"))
	verdict, _, _ := strings.Cut(string(recorded), "\n")
	harness.Eventually(t, harness.Patience, "the first three lines to name the cause", func(context.Context) error {
		out = explain(t, namespace)
		if os.Getenv("LOCKSTEP_UPDATE") == "" && !strings.HasPrefix(out, verdict+"\n") {
			return fmt.Errorf("not %q but:\n%s", verdict, out)
		}
		first := strings.Join(strings.SplitN(out, "\n", 4)[:min(3, strings.Count(out, "\n"))], "\n")
		for _, text := range texts {
			if !strings.Contains(first, text) {
				return fmt.Errorf("no %q in:\n%s", text, out)
			}
		}
		return nil
	})
	t.Log("\n" + out)
	golden(t, namespace, out)
	explain(t, namespace, "-o", "json")
}

// names are replacements for texts that differ from run to run.
var names = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`(shop)-[a-z0-9]{5,10}-[a-z0-9]{5}\b`), "$1-HASH-POD"},
	{regexp.MustCompile(`(ReplicaSet [a-z-]+/shop)-[a-z0-9]+`), "$1-HASH"},
	{regexp.MustCompile(`(ObjectSet (?:[a-z-]+/)?shop)-[a-z0-9]+`), "$1-HASH"},
	{regexp.MustCompile(`  \d+ times`), ""},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, n := range names {
		got = n.pattern.ReplaceAllString(got, n.name)
	}
	// Controllers can extend the chain later; only its start is stable.
	harness.Golden(t, name, got, func(text string) string {
		head, _, _ := strings.Cut(text, "\n\n")
		return head
	})
}
