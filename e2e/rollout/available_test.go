package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/require"
)

// steady returns a Deployment, without spec.replicas if replicas is 0.
func steady(name, image string, replicas int) string {
	spec := ""
	if replicas > 0 {
		spec = fmt.Sprintf("  replicas: %d\n", replicas)
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  annotations: {package-operator.run/phase: run}
spec:
%[3]s  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: main, image: "%[2]s"}]
`, name, image, spec)
}

// steadyProbes are true if all replicas are available and have the current template.
const steadyProbes = `  availabilityProbes:
  - selector: {kind: {group: apps, kind: Deployment}}
    probes:
    - condition: {type: Available, status: "True"}
    - cel:
        rule: self.status.updatedReplicas == self.spec.replicas && self.status.replicas == self.spec.replicas
        message: not every replica is of this template
`

// history holds the observed states of a Package.
type history struct {
	mu   sync.Mutex
	seen []*corev1alpha1.Package
}

// follow watches a Package until the test ends.
func follow(t *testing.T, env *harness.Env, namespace, name string) *history {
	t.Helper()
	events := env.Watch(t, &corev1alpha1.PackageList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	h := &history{}
	go func() {
		for e := range events {
			if pkg, ok := e.Object.(*corev1alpha1.Package); ok {
				h.mu.Lock()
				h.seen = append(h.seen, pkg)
				h.mu.Unlock()
			}
		}
	}()
	return h
}

// waitReady waits until Ready is observed for a generation.
func (h *history) waitReady(t *testing.T, generation int64) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "the watch to show the package ready", func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		last := h.seen[max(0, len(h.seen)-1):]
		if len(last) == 1 && conditions.IsTrueFor(last[0].Status.Conditions, corev1alpha1.ConditionReady, generation) {
			return nil
		}
		return fmt.Errorf("generation %d is not: %+v", generation, last)
	})
}

// check requires that the package was always Available, and within a generation Ready with
// its revision only and without interruption.
func (h *history) check(t *testing.T, revisions map[int64]int64) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	was := map[int64]bool{}
	for _, pkg := range h.seen {
		s, gen := pkg.Status, pkg.Generation
		if c := meta.FindStatusCondition(s.Conditions, corev1alpha1.ConditionAvailable); c == nil || c.Status != metav1.ConditionTrue {
			t.Errorf("at generation %d the package is not available: %+v", gen, c)
		}
		ready := meta.FindStatusCondition(s.Conditions, corev1alpha1.ConditionReady)
		is := ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == gen
		if is && s.Revision != revisions[gen] {
			t.Errorf("at generation %d the package is Ready with revision %d, want %d", gen, s.Revision, revisions[gen])
		}
		if was[gen] && !is {
			t.Errorf("at generation %d the package was Ready, and is not: %+v", gen, ready)
		}
		was[gen] = was[gen] || is
	}
}

// A package stays available while its objects are relabelled, upgraded, scaled, added, and changed
// by other clients. Each generation becomes Ready once, with its own revision.
func TestAvailableThroughout(t *testing.T) {
	t.Parallel()
	const ns = "steady"
	env := harness.Shared(t)
	env.Namespace(t, ns)
	image := func(tag, version string, workloads ...string) string {
		files := harness.Files{"manifest.yaml": harness.Manifest("web", []string{"base", "run"}, "  version: "+version+"\n"+steadyProbes)}
		files["base.yaml"] = harness.ConfigMap("web", "base", "v1")
		files["run.yaml"] = strings.Join(workloads, "---\n")
		return env.Push(t, "steady:"+tag, files)
	}
	web, free := steady("web", "example.com/web:1", 2), steady("free", "example.com/free:1", 0)
	upgraded := steady("web", "example.com/web:2", 2)
	env.Create(t, harness.Package(ns, "web", image("1", "1.0.0", web, free)))
	env.WaitAvailable(t, ns, "web")
	seen := follow(t, env, ns, "web")

	upgrade := func(image string, generation int64) {
		env.SetImage(t, ns, "web", image)
		seen.waitReady(t, generation)
	}
	converged := func(name string, check func(*appsv1.Deployment) bool) {
		t.Helper()
		awaitDeployment(t, env, ns, name, check)
		seen.waitReady(t, env.Package(t, ns, "web").(*corev1alpha1.Package).Generation)
	}
	upgrade(image("2", "1.1.0", web, free), 2) // only changes labels
	for _, name := range []string{"web", "free"} {
		converged(name, func(d *appsv1.Deployment) bool { return d.Labels[corev1alpha1.PackageVersionLabel] == "1.1.0" })
	}
	upgrade(image("3", "1.1.0", upgraded, free), 3)

	kubectl(t, env, "-n", ns, "scale", "deployment/free", "--replicas=3")
	converged("free", func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 3 })
	kubectl(t, env, "-n", ns, "scale", "deployment/free", "--replicas=1")
	converged("free", func(d *appsv1.Deployment) bool { return d.Status.Replicas == 1 })

	kubectl(t, env, "-n", ns, "scale", "deployment/web", "--replicas=4")
	converged("web", func(d *appsv1.Deployment) bool { return d.Generation >= 4 && *d.Spec.Replicas == 2 })
	kubectl(t, env, "-n", ns, "annotate", "--overwrite", "deployment/web", "package-operator.run/revision=17", "note=mine")
	converged("web", func(d *appsv1.Deployment) bool { return d.Annotations["note"] == "mine" })

	upgrade(image("4", "1.1.0", upgraded, free, steady("added", "example.com/added:1", 2)), 4)
	seen.check(t, map[int64]int64{1: 1, 2: 2, 3: 3, 4: 4})
	if reasons := warnings(t, env, ns); len(reasons) > 0 {
		t.Errorf("the package warned of %v", reasons)
	}
}

func kubectl(t *testing.T, env *harness.Env, args ...string) {
	t.Helper()
	if out, err := env.Kubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// awaitDeployment waits until a Deployment passes a check and is rolled out.
func awaitDeployment(t *testing.T, env *harness.Env, namespace, name string, check func(*appsv1.Deployment) bool) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "deployment "+name, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := env.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, d); err != nil {
			return err
		}
		if !check(d) || d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("generation %d, labels %v, %+v", d.Generation, d.Labels, d.Status)
		}
		return nil
	})
}

// warnings returns the reasons of the warnings about Packages.
func warnings(t *testing.T, env *harness.Env, namespace string) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(namespace)))
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "Package" && e.Type == "Warning" {
			reasons = append(reasons, e.Reason+": "+e.Note)
		}
	}
	slices.Sort(reasons)
	return reasons
}
