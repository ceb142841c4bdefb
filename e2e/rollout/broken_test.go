package rollout_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/lint"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
)

// workload is one object of the package that is upgraded.
type workload struct {
	kind, name, spec string
	// stuck are counters of the status that the upgrade to pods that cannot start
	// ends with; nothing where it is complete at once.
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

// variants are probes that authors write, beside the recipes. Some of them are
// true while a rollout fails; lint has to know which, and of what.
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

// held is a finalizer of pods that are to take their time to go, as pods do that end in
// good order: until then a DaemonSet's controller reports them with the new generation.
const held = "example.com/held"

// release returns the package with probes in place of the recipes, where there
// are any. Pods of a broken one are never scheduled: to their controllers they
// are what pods of an image are that cannot start.
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
metadata: {name: %s, labels: {app: %s}, annotations: {package-operator.run/phase: deploy}}
spec:
  selector: {matchLabels: {app: %s}}
  template: {metadata: {labels: {app: %s}%s}, spec: {%s}}
`, w.kind, w.name, label, label, label, meta, pod)
		if w.spec != "" {
			files[label+".yaml"] = strings.Replace(files[label+".yaml"], "spec:\n", "spec:\n"+indented(w.spec), 1)
		}
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

// indented writes "a: 1, b: {c: 2, d: 3}" on a line for each key.
func indented(spec string) string {
	var out strings.Builder
	depth := 0
	out.WriteString("  ")
	for _, r := range spec {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth == 0:
			out.WriteString("\n ")
			continue
		}
		out.WriteRune(r)
	}
	return out.String() + "\n"
}

// seen are the states of workloads, by kind and name, as a watch delivered them.
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
	watcher, err := client.NewWithWatch(env.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))
		events, err := watcher.Watch(t.Context(), list, client.InNamespace(namespace))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(events.Stop)
		go func() {
			for event := range events.ResultChan() {
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

// While an upgrade brings pods that cannot start, the recipes are true of no
// workload at any time, and the revision does not count as rolled out; what has
// no pods to replace does not wait. Of other probes lint knows which are true
// then, and of which workloads.
func TestFailedRollout(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "failed")
	env.Create(t, harness.Package("failed", "workloads", env.Push(t, "workloads:1", release("v1", false, nil))))
	env.WaitAvailable(t, "failed", "workloads")
	var states seen
	states.follow(t, env, "failed")

	env.SetImage(t, "failed", "workloads", env.Push(t, "workloads:2", release("v2", true, nil)))
	for _, w := range workloads {
		harness.Eventually(t, 60*time.Second, w.kind+" "+w.name+" to be stuck", func(ctx context.Context) error {
			if err := letGo(ctx, env, &states); err != nil {
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
		if passed := truth(t, release("v2", true, nil), broken[w.kind+"/"+w.name]); passed != (w.stuck == nil) {
			t.Errorf("%s %s: the recipe was true: %v", w.kind, w.name, passed)
		}
	}
	compareWithLint(t, broken)

	env.SetImage(t, "failed", "workloads", env.Push(t, "workloads:3", release("v3", false, nil)))
	harness.Eventually(t, 60*time.Second, "the last revision", func(context.Context) error {
		if rev := latestSet(t, env, "failed").Spec.Revision; rev != 3 {
			return fmt.Errorf("it is %d", rev)
		}
		return nil
	})
	// A StatefulSet waits for its broken pods until somebody deletes them:
	// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback
	// One that is deleted before the controller has seen the new template comes back as it was.
	harness.Eventually(t, 60*time.Second, "the last revision to be available", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := env.Client.List(ctx, pods, client.InNamespace("failed")); err != nil {
			return err
		}
		if err := letGo(ctx, env, &states); err != nil {
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

// letGo lets pods of DaemonSets go that are being deleted, once their DaemonSet was seen
// to be reported with its new generation.
func letGo(ctx context.Context, env *harness.Env, states *seen) error {
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

// stuck checks that the last state is the one that the broken upgrade ends with.
func stuck(w workload, states []map[string]any) error {
	if len(states) == 0 {
		return fmt.Errorf("nothing was seen of the upgrade")
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

// truth tells whether the probes of a package were true of any of some states of
// the new generation.
func truth(t *testing.T, files harness.Files, states []map[string]any) bool {
	t.Helper()
	manifest, err := loader.Describe(loader.Files{"manifest.yaml": []byte(files["manifest.yaml"])})
	if err != nil {
		t.Fatal(err)
	}
	set, err := probes.Compile(manifest.Spec.AvailabilityProbes)
	if err != nil {
		t.Fatal(err)
	}
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
		input := loader.Files{}
		for path, text := range files {
			input[path] = []byte(text)
		}
		findings, err := lint.Run(t.Context(), input, lint.Options{Only: []string{"probe-misses-failed-rollout"}})
		if err != nil {
			t.Fatal(err)
		}
		for j, w := range workloads {
			if w.stuck == nil {
				continue
			}
			warned := slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Field == fmt.Sprintf("spec.availabilityProbes[%d]", j) })
			if passed := truth(t, files, broken[w.kind+"/"+w.name]); passed != warned {
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
