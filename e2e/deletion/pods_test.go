package deletion_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// serving returns a package with settings and a Deployment that reads them. The Deployment's
// selector is immutable.
func serving(version string) harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("serving", []string{"settings", "serve"}, ""),
		"objects.yaml": harness.ConfigMap("settings", "settings", "v1") + `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, annotations: {package-operator.run/phase: serve, package-operator.run/on-immutable: Recreate}}
spec:
  selector: {matchLabels: {version: ` + version + `}}
  template: {metadata: {labels: {version: ` + version + `}}, spec: {containers: [{name: main, image: registry.example.com/serve:v1}]}}
`,
	}
}

// holdPods delays the end of a namespace's pods until release is called, as for a slow shutdown.
func holdPods(t *testing.T, env *harness.Env, namespace string) (release func()) {
	t.Helper()
	var held []corev1.Pod
	harness.Eventually(t, harness.Patience, "pods to be held", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := env.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil || len(pods.Items) == 0 {
			return fmt.Errorf("%d pods, %w", len(pods.Items), err)
		}
		for i := range pods.Items {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/serving"]}}`))
			if err := env.Client.Patch(ctx, &pods.Items[i], patch); err != nil {
				return err
			}
		}
		held = pods.Items
		return nil
	})
	return func() {
		for i := range held {
			require.NoError(t, env.Client.Patch(t.Context(), &held[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		}
	}
}

// awaitPods waits until the package reports that the Deployment waits for its pods.
func awaitPods(t *testing.T, env *harness.Env, namespace string) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "the status to name the object that blocks", func(context.Context) error {
		blocking := env.Package(t, namespace, "serving").PackageStatus().Blocking
		if len(blocking) != 1 || blocking[0].Kind != "Deployment" || !strings.Contains(blocking[0].Message, "is being deleted; waits for its pods and other dependents to end") {
			return fmt.Errorf("it is %v", blocking)
		}
		return nil
	})
}

// The phase before a Deployment stays until the Deployment's pods have ended. The deletion does not
// make more requests because of that.
func TestPodsEndBeforeTheEarlierPhase(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "pods-end")
	env.Create(t, harness.Package("pods-end", "serving", env.Push(t, "serving:v1", serving("v1"))))
	env.WaitAvailable(t, "pods-end", "serving")
	release := holdPods(t, env, "pods-end")
	journal := env.Journal(t)
	pkg := env.Package(t, "pods-end", "serving")
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	awaitPods(t, env, "pods-end")
	settings := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: "pods-end", Name: "settings"}, settings))
	if settings.DeletionTimestamp != nil {
		t.Error("the settings are deleted while pods use them")
	}
	var explained output
	if code := command(t, env, &explained, "explain", "serving", "-n", "pods-end"); code != 0 || !strings.Contains(explained.String(), "waits for 1 Pod: pods-end/serve-") {
		t.Errorf("explain does not name the pod: %d %s", code, explained.String())
	}
	release()
	env.WaitGone(t, harness.Patience, pkg)
	const objects, beside = 2, 20
	if requests := journal.Rest(t, "pods-end"); len(requests) > objects+beside {
		t.Errorf("%d requests:%s", len(requests), harness.Lines(requests))
	}
}

// A recreated Deployment does not start pods while former ones still run.
func TestRecreatedDeploymentWaitsForPods(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "recreated")
	env.Create(t, harness.Package("recreated", "serving", env.Push(t, "serving:v1", serving("v1"))))
	env.WaitAvailable(t, "recreated", "serving")
	release := holdPods(t, env, "recreated")
	env.SetImage(t, "recreated", "serving", env.Push(t, "serving:v2", serving("v2")))
	awaitPods(t, env, "recreated")
	release()
	env.WaitAvailable(t, "recreated", "serving")
	pods := &corev1.PodList{}
	require.NoError(t, env.Client.List(t.Context(), pods, client.InNamespace("recreated")))
	if slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Labels["version"] == "v1" }) {
		t.Error("a former pod is left")
	}
}
