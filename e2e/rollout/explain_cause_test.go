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

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/test/require"
)

// missingImage is a kwok Stage that keeps pods of an image from starting, with the
// status and the Event of a kubelet that cannot pull it. Its weight puts it before
// the stage that makes pods run.
const missingImage = `
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-image-missing
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'DoesNotExist'
    - key: '.spec.containers.[].image'
      operator: 'In'
      values:
      - 'registry.example.com/shop:v9'
  weight: 100
  next:
    event:
      type: Warning
      reason: Failed
      message: 'Failed to pull image "registry.example.com/shop:v9": not found'
    statusTemplate: |
      phase: Pending
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        state:
          waiting:
            reason: ImagePullBackOff
            message: 'Back-off pulling image "registry.example.com/shop:v9"'
      {{ end }}
`

// addStage gives the stage to kwok, which reads it when it starts.
func addStage(t *testing.T, env *harness.Env) {
	t.Helper()
	path := filepath.Join(env.DataDir(), "config", "kwok.yaml")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	if _, err := file.WriteString(missingImage); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, file.Close())
	restartKwok(t, env)
}

// restartKwok waits until the new process holds the Leases of the nodes, without which it leaves pods alone: those of the
// former one expire after 40 seconds, and pods that were there before are then at times never looked at.
func restartKwok(t *testing.T, env *harness.Env) {
	t.Helper()
	require.NoError(t, env.StopComponent(t.Context(), sandbox.Kwok))
	inLeases := client.InNamespace(corev1.NamespaceNodeLease)
	require.NoError(t, env.Client.DeleteAllOf(t.Context(), &coordinationv1.Lease{}, inLeases))
	require.NoError(t, env.StartComponent(t.Context(), sandbox.Kwok))
	var nodes corev1.NodeList
	require.NoError(t, env.Client.List(t.Context(), &nodes))
	harness.Eventually(t, harness.Patience, "kwok to hold the Leases of the nodes", func(ctx context.Context) error {
		var leases coordinationv1.LeaseList
		if err := env.Client.List(ctx, &leases, inLeases); err != nil {
			return err
		}
		if len(leases.Items) < len(nodes.Items) {
			return fmt.Errorf("%d of %d", len(leases.Items), len(nodes.Items))
		}
		return nil
	})
}

// clusterPackages are the ClusterPackages of tests without a namespace, by test.
var clusterPackages = map[string]string{"definition": "shop", "homeless": "homeless", "apiservice": "apiservice"}

// explain runs kubectl package explain in this process.
func explain(t *testing.T, namespace string, flags ...string) string {
	t.Helper()
	env := shared(t)
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

// What differs from run to run, and what stands for it.
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
	// The chain grows by what controllers report later; how it begins does not.
	harness.Golden(t, name, got, func(text string) string {
		head, _, _ := strings.Cut(text, "\n\n")
		return head
	})
}
