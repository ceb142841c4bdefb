package rollout_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/author/lint"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// workload is one object of the package that is upgraded.
type workload struct {
	kind, name, spec string
	// stuck has the final counters of the status in an upgrade to pods that cannot start;
	// nil if the upgrade completes.
	stuck map[string]int64
}

var workloads = []workload{
	{"Deployment", "surge", "replicas: 1", map[string]int64{"replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}},
	{"Deployment", "no-surge", "replicas: 1, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", map[string]int64{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 0}},
	{"Deployment", "recreate", "replicas: 1, strategy: {type: Recreate}", map[string]int64{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 0}},
	{"Deployment", "four", "replicas: 4, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}", map[string]int64{"replicas": 5, "updatedReplicas": 2, "availableReplicas": 3}},
	{"Deployment", "none", "replicas: 0", nil},
	{"StatefulSet", "one", "replicas: 1, serviceName: one", map[string]int64{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 0}},
	{"StatefulSet", "two", "replicas: 2, serviceName: two", map[string]int64{"replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}},
	{"StatefulSet", "partition", "replicas: 2, serviceName: partition, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}", map[string]int64{"replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}},
	{"StatefulSet", "none", "replicas: 0, serviceName: none", nil},
	{"StatefulSet", "on-delete", "replicas: 1, serviceName: on-delete, updateStrategy: {type: OnDelete}", nil},
	{"DaemonSet", "rolling", "updateStrategy: {type: RollingUpdate}", map[string]int64{"updatedNumberScheduled": 1, "numberAvailable": 1, "currentNumberScheduled": 2}},
	{"DaemonSet", "surge", "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", map[string]int64{"updatedNumberScheduled": 0, "numberAvailable": 2, "currentNumberScheduled": 2}},
	{"DaemonSet", "nowhere", "", nil},
}

// variants are other probes than the recipes. Some are true while a rollout fails, and lint
// has to report those.
var variants = map[string][]string{
	"Deployment": {
		`{condition: {type: Available, status: "True"}}`,
		`{condition: {type: Available, status: "True"}}, {fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}}`,
		`{fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .spec.replicas}}, {cel: {rule: self.status.availableReplicas >= self.spec.replicas, message: unavailable}}`,
		`{fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .spec.replicas}}`,
	},
	"StatefulSet": {
		`{fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}}`,
		`{fieldsEqual: {fieldA: .status.readyReplicas, fieldB: .status.replicas}}`,
	},
	"DaemonSet": {
		`{fieldsEqual: {fieldA: .status.numberReady, fieldB: .status.desiredNumberScheduled}}`,
		`{fieldsEqual: {fieldA: .status.numberAvailable, fieldB: .status.desiredNumberScheduled}}, {fieldsEqual: {fieldA: .status.updatedNumberScheduled, fieldB: .status.desiredNumberScheduled}}`,
	},
}

// held is a finalizer that simulates graceful termination of pods: while they terminate, a
// DaemonSet's controller reports them with the new generation.
const held = "example.com/held"

// release returns the package with the probes of checks, or with the recipes if checks is nil.
// Pods of a broken release are never scheduled. Controllers cannot distinguish that from an
// image that cannot start.
func release(version string, broken bool, checks func(workload) string) harness.Files {
	files := harness.Files{}
	var entries strings.Builder
	for _, w := range workloads {
		pod := `containers: [{name: app, image: "example.com/app:` + version + `"}]`
		if broken {
			pod += `, schedulingGates: [{name: example.com/broken}]`
		}
		meta := ""
		if w.kind == "DaemonSet" {
			meta = ", finalizers: [" + held + "]"
		}
		if w.name == "nowhere" {
			pod += `, nodeSelector: {example.com/nodes: none}`
		}
		label := strings.ToLower(w.kind) + "-" + w.name
		files[label+".yaml"] = fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: %s, labels: {app: %[3]s}, annotations: {package-operator.run/phase: deploy}}
spec: {selector: {matchLabels: {app: %[3]s}}, template: {metadata: {labels: {app: %[3]s}%s}, spec: {%s}}, %s}
`, w.kind, w.name, label, meta, pod, w.spec)
		if checks != nil {
			fmt.Fprintf(&entries, "  - selector: {kind: {group: apps, kind: %s}, selector: {matchLabels: {app: %s}}}\n    probes: [%s]\n", w.kind, label, checks(w))
		}
	}
	if checks == nil {
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			_, text := probes.Recipe(kind)
			entries.WriteString("  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n")
		}
	}
	files["manifest.yaml"] = harness.Manifest("workloads", []string{"deploy"}, "  availabilityProbes:\n"+entries.String())
	return files
}

// seen holds the observed states of workloads, by kind and name.
type seen struct {
	sync.Mutex
	states map[string][]map[string]any
}

func (s *seen) of(w workload) []map[string]any {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.states[w.kind+"/"+w.name])
}

func (s *seen) follow(t *testing.T, env *harness.Env, namespace string) {
	t.Helper()
	s.states = map[string][]map[string]any{}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))
		events := env.Watch(t, list, client.InNamespace(namespace))
		go func() {
			for event := range events {
				if obj, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted {
					s.Lock()
					key := obj.GetKind() + "/" + obj.GetName()
					s.states[key] = append(s.states[key], obj.Object)
					s.Unlock()
				}
			}
		}()
	}
}

// While new pods cannot start, the recipes are true of no workload that replaces pods, and
// the revision is not available. Lint reports which other probes are true then.
func TestFailedRollout(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "failed")
	env.Create(t, harness.Package("failed", "workloads", env.Push(t, "workloads:1", release("v1", false, nil))))
	env.WaitAvailable(t, "failed", "workloads")
	var states seen
	states.follow(t, env, "failed")

	env.SetImage(t, "failed", "workloads", env.Push(t, "workloads:2", release("v2", true, nil)))
	for _, w := range workloads {
		harness.Eventually(t, harness.Patience, w.kind+" "+w.name+" to be stuck", func(ctx context.Context) error {
			if err := releasePods(ctx, env, &states); err != nil {
				return err
			}
			return stuck(w, states.of(w))
		})
	}
	states.Lock()
	broken := maps.Clone(states.states)
	states.Unlock()
	newest := latestSet(t, env, "failed")
	for _, c := range newest.Status.Conditions {
		if c.Type == corev1alpha1.ConditionSucceeded || c.Type == corev1alpha1.ConditionAvailable && c.Status == "True" {
			t.Errorf("the broken revision is %s: %s", c.Type, c.Message)
		}
	}
	for _, w := range workloads {
		if passed := everTrue(t, release("v2", true, nil), broken[w.kind+"/"+w.name]); passed != (w.stuck == nil) {
			t.Errorf("%s %s: the recipe was true: %v", w.kind, w.name, passed)
		}
	}
	compareWithLint(t, broken)

	env.SetImage(t, "failed", "workloads", env.Push(t, "workloads:3", release("v3", false, nil)))
	harness.Eventually(t, harness.Patience, "the last revision", func(context.Context) error {
		if rev := latestSet(t, env, "failed").Spec.Revision; rev != 3 {
			return fmt.Errorf("it is %d", rev)
		}
		return nil
	})
	// A StatefulSet keeps its broken pods until they are deleted:
	// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback
	// One deleted before its controller has observed the new template is recreated as it was.
	harness.Eventually(t, harness.Patience, "the last revision to be available", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := env.Client.List(ctx, pods, client.InNamespace("failed")); err != nil {
			return err
		}
		if err := releasePods(ctx, env, &states); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if len(pod.Spec.SchedulingGates) > 0 && pod.OwnerReferences[0].Kind == "StatefulSet" {
				if err := client.IgnoreNotFound(env.Client.Delete(ctx, &pod)); err != nil {
					return err
				}
			}
		}
		if status := latestSet(t, env, "failed").Status; !meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionAvailable) {
			return fmt.Errorf("it says %+v", status.Conditions)
		}
		return nil
	})
	env.WaitAvailable(t, "failed", "workloads")
}

// releasePods removes the finalizer of deleted pods of DaemonSets whose new generation is
// observed.
func releasePods(ctx context.Context, env *harness.Env, states *seen) error {
	pods := &corev1.PodList{}
	if err := env.Client.List(ctx, pods, client.InNamespace("failed")); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil || !slices.Contains(pod.Finalizers, held) {
			continue
		}
		all := states.of(workload{kind: "DaemonSet", name: pod.OwnerReferences[0].Name})
		if len(all) == 0 {
			continue
		}
		last := all[len(all)-1]
		generation, _, _ := unstructured.NestedInt64(last, "metadata", "generation")
		reported, _, _ := unstructured.NestedInt64(last, "status", "observedGeneration")
		if generation < 2 || reported != generation {
			continue
		}
		before := pod.DeepCopy()
		pod.Finalizers = nil
		if err := client.IgnoreNotFound(env.Client.Patch(ctx, &pod, client.MergeFrom(before))); err != nil {
			return err
		}
	}
	return nil
}

// stuck checks that the last state is the final one of the broken upgrade.
func stuck(w workload, states []map[string]any) error {
	if len(states) == 0 {
		return fmt.Errorf("the upgrade was not observed")
	}
	last := states[len(states)-1]
	status, _, _ := unstructured.NestedMap(last, "status")
	generation, _, _ := unstructured.NestedInt64(last, "metadata", "generation")
	if status["observedGeneration"] != generation || generation < 2 {
		return fmt.Errorf("generation %d, observed %v", generation, status["observedGeneration"])
	}
	for field, want := range w.stuck {
		if got, _ := status[field].(int64); got != want {
			return fmt.Errorf("%s is %d, not %d", field, got, want)
		}
	}
	return nil
}

// everTrue reports whether the probes of a package are true of any state of a new generation.
func everTrue(t *testing.T, files harness.Files, states []map[string]any) bool {
	t.Helper()
	manifest, err := loader.Describe(loader.Files{"manifest.yaml": []byte(files["manifest.yaml"])})
	require.NoError(t, err)
	set, err := probes.Compile(manifest.Spec.AvailabilityProbes)
	require.NoError(t, err)
	return slices.ContainsFunc(states, func(obj map[string]any) bool {
		generation, _, _ := unstructured.NestedInt64(obj, "metadata", "generation")
		return generation > 1 && set.Evaluate(obj).Status == probes.True
	})
}

func compareWithLint(t *testing.T, broken map[string][]map[string]any) {
	t.Helper()
	for i := range 4 {
		checks := func(w workload) string { return variants[w.kind][min(i, len(variants[w.kind])-1)] }
		files := release("v2", false, checks)
		findings, err := lint.Run(t.Context(), files.Bytes(), lint.Options{})
		require.NoError(t, err)
		for j, w := range workloads {
			if w.stuck == nil {
				continue
			}
			warned := slices.ContainsFunc(findings, func(f lint.Finding) bool {
				return f.Rule == "probe-misses-failed-rollout" && f.Field == fmt.Sprintf("spec.availabilityProbes[%d]", j)
			})
			// A Deployment sums up its ReplicaSets' statuses. If one of them is outdated, the sum
			// exceeds the limit.
			states := slices.DeleteFunc(slices.Clone(broken[w.kind+"/"+w.name]), func(obj map[string]any) bool {
				replicas, _, _ := unstructured.NestedInt64(obj, "status", "replicas")
				return replicas > w.stuck["replicas"]
			})
			if passed := everTrue(t, files, states); passed != warned {
				t.Errorf("%s %s, probes [%s]: true in a rollout that fails: %v; lint warns: %v", w.kind, w.name, checks(w), passed, warned)
			}
		}
	}
}

func latestSet(t *testing.T, env *harness.Env, namespace string) corev1alpha1.ObjectSet {
	t.Helper()
	sets := &corev1alpha1.ObjectSetList{}
	if err := env.Client.List(t.Context(), sets, client.InNamespace(namespace)); err != nil || len(sets.Items) == 0 {
		t.Fatalf("%d sets, %v", len(sets.Items), err)
	}
	return slices.MaxFunc(sets.Items, func(a, b corev1alpha1.ObjectSet) int { return int(a.Spec.Revision - b.Spec.Revision) })
}
