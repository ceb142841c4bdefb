package deletion_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/test/require"
)

// draining returns an operator: a CRD, a namespace, and a Deployment.
func draining() harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("draining", []string{"definition", "home", "deploy"}, ""),
		"objects.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tanks.drain.example.com, annotations: {package-operator.run/phase: definition}}
spec:
  group: drain.example.com
  scope: Namespaced
  names: {kind: Tank, listKind: TankList, plural: tanks, singular: tank}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: draining, annotations: {package-operator.run/phase: home}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: draining, annotations: {package-operator.run/phase: deploy}}
spec:
  replicas: 0
  selector: {matchLabels: {app: controller}}
  template: {metadata: {labels: {app: controller}}, spec: {containers: [{name: main, image: registry.example.com/drain:v1}]}}
`,
	}
}

func tank(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "drain.example.com/v1", "kind": "Tank"}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetFinalizers([]string{"drain.example.com/drain"})
	return u
}

// output is a buffer that can be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// command runs kubectl package in this process.
func command(t *testing.T, env *harness.Env, out *output, args ...string) int {
	t.Helper()
	return cli.Run(t.Context(), append(args, "--kubeconfig", env.Kubeconfig()), genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
}

// Status, delete and explain report why a deletion hangs: the conditions of the namespace and
// the remaining objects. The dry run warns of it.
func TestDeletionHangs(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "draining-too")
	env.Create(t, harness.ClusterPackage("draining", env.Push(t, "draining:v1", draining())))
	env.WaitAvailable(t, "", "draining")
	tanks := []*unstructured.Unstructured{tank("draining", "north"), tank("draining-too", "south")}
	for _, u := range tanks {
		harness.Eventually(t, harness.Patience, "a tank to be created", func(ctx context.Context) error { return env.Client.Create(ctx, u.DeepCopy()) })
	}
	const strand = "CustomResourceDefinition tanks.drain.example.com"
	var dry output
	if code := command(t, env, &dry, "delete", "clusterpackage/draining", "--dry-run"); code != 0 {
		t.Fatalf("%d: %s", code, dry.String())
	}
	inOrder(t, dry.String(), "clusterpackage draining  to be deleted", "- Deployment draining/controller", "- Namespace draining", "- "+strand,
		"Data that might be lost", "everything in it is deleted, including 1 object that does not belong to the package: Tank north", strand+"  all 2 tanks are deleted with it",
		"Resources that might hang", "waits for Tank draining-too/south (finalizer drain.example.com/drain), Tank draining/north (finalizer drain.example.com/drain)", "Plan: 3 to delete")

	var out output
	code := make(chan int, 1)
	go func() { code <- command(t, env, &out, "delete", "clusterpackage/draining", "--timeout", "10m") }()
	await := func(text string) {
		harness.Eventually(t, harness.Patience, "delete to print "+text, func(context.Context) error {
			if !strings.Contains(out.String(), text) {
				return fmt.Errorf("it printed:\n%s", out.String())
			}
			return nil
		})
	}
	await("warning: Namespace draining: everything in it is deleted, including 1 object that does not belong to the package: Tank north")
	await("warning: " + strand + ": waits for Tank draining-too/south (finalizer")
	await("Namespace draining: is being deleted; NamespaceContentRemaining: Some resources are remaining: tanks.drain.example.com has 1 resource instances")
	await("1 Tank left: draining/north (finalizer drain.example.com/drain)")
	// The command reads the namespace itself, and the manager reports it in its own time.
	harness.Eventually(t, harness.Patience, "the status to report the finalizer", func(context.Context) error {
		blocking := env.Package(t, "", "draining").PackageStatus().Blocking
		if len(blocking) != 1 || !strings.Contains(blocking[0].Message, "NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: drain.example.com/drain in 1 resource instances") {
			return fmt.Errorf("blocking: %+v", blocking)
		}
		return nil
	})
	var why output
	command(t, env, &why, "explain", "clusterpackage/draining")
	inOrder(t, why.String(), "Cause  Namespace draining is being deleted and waits for 1 Tank: draining/north (finalizer drain.example.com/drain)", "Do     The controller that set a finalizer", "kubectl -n draining patch tank.drain.example.com north")

	drain(t, env, tanks[0])
	await("1 Tank left: draining-too/south (finalizer drain.example.com/drain); is being deleted")
	drain(t, env, tanks[1])
	if got := <-code; got != 0 {
		t.Errorf("%d\n%s", got, out.String())
	}
}

// drain removes the finalizers.
func drain(t *testing.T, env *harness.Env, u *unstructured.Unstructured) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, env.Client.Patch(t.Context(), u.DeepCopy(), patch, &client.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationIgnore}))
}

// inOrder checks that a text contains the parts in this order.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is missing, or not in order, in:\n%s", part, text)
			return
		}
		rest = after
	}
}
