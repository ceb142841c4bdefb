package lint

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/probes"
)

// recipes ends the advice for kinds with a recipe in the documentation.
const recipes = ", as the recipes of docs/packages/probes.md do"

// statusKinds are the kinds with a status to probe, and its fields.
var statusKinds = map[schema.GroupKind]string{
	deploymentKind:  `.status.updatedReplicas, .status.replicas and .status.availableReplicas, each equal to .spec.replicas` + recipes,
	statefulSetKind: `.status.updatedReplicas, .status.replicas and .status.availableReplicas, each equal to .spec.replicas` + recipes,
	daemonSetKind:   `.status.updatedNumberScheduled and .status.numberAvailable, each equal to .status.desiredNumberScheduled` + recipes,
	replicaSetKind:  `.status.replicas and .status.availableReplicas, each equal to .spec.replicas` + recipes,
	jobKind:         `the condition Complete`,
	podKind:         `the condition Ready`,
	crdKind:         `the condition Established`,
	apiKind:         `the condition Available`,
}

// missingProbe reports each kind once, at its first object without a probe, because one probe
// covers them all.
func missingProbe(c *oneCase, r reporter) {
	for kind, advice := range statusKinds {
		var first *object
		var names []string
		for _, o := range c.of(kind) {
			if !c.probed(o) {
				first, names = cmp.Or(first, o), append(names, o.GetName())
			}
		}
		if first != nil {
			r.at(first, "", "Probe "+advice+".", "no probe checks %s", violation.Listed(names))
		}
	}
}

// readyAtOnce checks workloads whose pods a probe waits for.
func readyAtOnce(c *oneCase, r reporter) {
	for _, o := range c.of(workloadKinds...) {
		// minReadySeconds makes the controller wait before a pod counts as available, so it
		// replaces a probe.
		seconds, _, _ := unstructured.NestedInt64(o.Object, "spec", "minReadySeconds")
		containers := fields.Maps(o.Object, "spec", "template", "spec", "containers")
		checked := slices.ContainsFunc(containers, func(container map[string]any) bool {
			return container["readinessProbe"] != nil || container["startupProbe"] != nil
		})
		if c.probed(o) && seconds == 0 && !checked {
			r.at(o, "spec.template.spec.containers", "Add a readinessProbe, or set minReadySeconds.", "no container has a readinessProbe or a startupProbe, and minReadySeconds is 0")
		}
	}
}

// probeMissesFailedRollout evaluates the probes in every state of a failing rollout.
func probeMissesFailedRollout(c *oneCase, r reporter) {
	set, err := probes.Compile(c.manifest.Spec.AvailabilityProbes)
	// The loader reports an invalid probe.
	if err != nil {
		return
	}

	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		var seen map[string]any
		c.inAnyCase(func(o *object) bool {
			if selects(probe.Selector, o) {
				for _, live := range failedRollout(o) {
					if seen == nil && set.Evaluate(live).Status == probes.True {
						seen = live
					}
				}
			}
			return seen != nil
		})

		if seen != nil {
			r.manifest(fmt.Sprintf("spec.availabilityProbes[%d]", i), "Probe "+statusKinds[schema.GroupKind{Group: probe.Selector.Kind.Group, Kind: probe.Selector.Kind.Kind}]+".",
				"%s %s: true before pods of a new template are ready, with %s", probe.Selector.Kind.Kind, fields.Text(seen, "metadata", "name"), counters(fields.Map(seen, "status")))
		}
	}
}

// dotted matches a path without the syntax of jq.
var dotted = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_]*)+$`)

// probeUnknownField reports fields of probes that the schema of the kind does not have.
func probeUnknownField(c *oneCase, r reporter) {
	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		for _, o := range c.objects {
			if !selects(probe.Selector, o) {
				continue
			}
			for j, p := range probe.Probes {
				read := fieldsRead(p)
				for _, field := range slices.Sorted(maps.Keys(read)) {
					// A path in the syntax of jq cannot be compared with a schema.
					if path := read[field]; dotted.MatchString(path) && !c.checker.HasField(o.GroupVersionKind(), strings.Split(path, ".")[1:]) {
						r.manifest(fmt.Sprintf("spec.availabilityProbes[%d].probes[%d].%s", i, j, field),
							"Name a field of its status.", "the schema of %s has no field %s", o.kind.Kind, path)
					}
				}
			}
		}
	}
}

// fieldsRead returns the paths that a probe reads, by the probe's fields.
func fieldsRead(p corev1alpha1.Probe) map[string]string {
	switch {
	case p.Condition != nil:
		return map[string]string{"condition": ".status.conditions"}
	case p.FieldsEqual != nil:
		return map[string]string{"fieldsEqual.fieldA": p.FieldsEqual.FieldA, "fieldsEqual.fieldB": p.FieldsEqual.FieldB}
	}
	return nil
}

// probeWithoutObjects reports probes that select no object in any case.
func probeWithoutObjects(c *oneCase, r reporter) {
	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		if !c.inAnyCase(func(o *object) bool { return selects(probe.Selector, o) }) {
			r.manifest(fmt.Sprintf("spec.availabilityProbes[%d].selector", i), "Correct or remove the probe, or add a test case with an object that it selects.",
				"it selects no object of the package")
		}
	}
}

// failedRollout returns the states of a workload during the rollout of a template whose pods never
// become ready, for example because an image cannot start. It returns none if no pods are replaced:
// without replicas, with the strategy OnDelete, or with a partition above all of them.
func failedRollout(o *object) []map[string]any {
	switch o.kind {
	case deploymentKind:
		return states(o, failedDeployment)
	case statefulSetKind:
		return states(o, failedStatefulSet)
	case daemonSetKind:
		return states(o, failedDaemonSet)
	}
	return nil
}

// states returns a workload with each status of a failed rollout. failed also sets the API server's
// defaults.
func states[Workload, Status any](o *object, failed func(*Workload) []Status) (all []map[string]any) {
	var workload Workload
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &workload) != nil {
		return nil
	}

	for _, status := range failed(&workload) {
		live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&workload)
		observed, statusErr := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		if err != nil || statusErr != nil {
			return nil
		}
		// The controller has seen the new template, so a probe on the generation does not help.
		fields.Map(live, "metadata")["generation"], observed["observedGeneration"] = int64(2), int64(2)
		live["status"] = observed
		all = append(all, live)
	}

	return all
}

// scaled resolves a number or a percentage of a total. Invalid values are 0.
func scaled(value *intstr.IntOrString, fallback string, total int32, roundUp bool) int32 {
	n, _ := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(value, intstr.Parse(fallback))), int(total), roundUp)
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

// failedDeployment returns the states of a Deployment whose new pods never become ready: before,
// during and after the surge.
func failedDeployment(d *appsv1.Deployment) (all []appsv1.DeploymentStatus) {
	n := ptr.Deref(d.Spec.Replicas, 1)
	if n == 0 {
		return nil
	}

	update := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	surge, unavailable := scaled(update.MaxSurge, "25%", n, true), min(n, scaled(update.MaxUnavailable, "25%", n, false))
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // as the controller does
	}

	stuck := []struct{ old, updated int32 }{{n, 0}, {n, min(surge, n)}, {n - unavailable, min(surge, n)}, {n - unavailable, min(n, surge+unavailable)}}
	d.Spec.Replicas = &n
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		// Recreate deletes all old pods before it creates the first new one.
		unavailable = 0
		stuck = []struct{ old, updated int32 }{{n, 0}, {0, 0}, {0, n}}
	} else {
		d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	for _, s := range stuck {
		available := corev1.ConditionTrue
		// The controller counts a Deployment as available down to its maxUnavailable.
		if s.old < n-unavailable {
			available = corev1.ConditionFalse
		}
		for _, progressing := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
			all = append(all, appsv1.DeploymentStatus{
				Replicas: s.old + s.updated, UpdatedReplicas: s.updated, UnavailableReplicas: s.updated, ReadyReplicas: s.old, AvailableReplicas: s.old,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available}, {Type: appsv1.DeploymentProgressing, Status: progressing}},
			})
		}
	}

	return all
}

// failedStatefulSet returns the states of a StatefulSet whose first replaced pods never become
// ready. Pods below the partition keep the old template.
func failedStatefulSet(set *appsv1.StatefulSet) (all []appsv1.StatefulSetStatus) {
	n, strategy := ptr.Deref(set.Spec.Replicas, 1), &set.Spec.UpdateStrategy
	update := ptr.Deref(strategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	partition := ptr.Deref(update.Partition, 0)
	if n <= partition || strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}

	update.Partition = &partition
	set.Spec.Replicas, strategy.Type, strategy.RollingUpdate = &n, appsv1.RollingUpdateStatefulSetStrategyType, &update

	down := min(n-partition, max(1, scaled(update.MaxUnavailable, "1", n, true)))
	for _, s := range []struct{ pods, ready, updated int32 }{{n, n, 0}, {n - down, n - down, 0}, {n, n - down, down}} {
		all = append(all, appsv1.StatefulSetStatus{
			Replicas: s.pods, ReadyReplicas: s.ready, AvailableReplicas: s.ready, CurrentReplicas: s.pods - s.updated, UpdatedReplicas: s.updated,
			CurrentRevision: set.Name + "-1", UpdateRevision: set.Name + "-2",
		})
	}

	return all
}

// failedDaemonSet assumes a cluster of one node and a cluster of three. With a surge, the
// controller counts the older of two pods on a node.
func failedDaemonSet(set *appsv1.DaemonSet) (all []appsv1.DaemonSetStatus) {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return nil
	}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	update := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
	add := func(nodes, pods, ready, updated int32) {
		all = append(all, appsv1.DaemonSetStatus{
			DesiredNumberScheduled: nodes, CurrentNumberScheduled: pods, NumberReady: ready, NumberAvailable: ready, NumberUnavailable: nodes - ready, UpdatedNumberScheduled: updated,
		})
	}

	for _, nodes := range []int32{1, 3} {
		add(nodes, nodes, nodes, 0)
		// Without a surge, the old pod of a node is deleted first.
		if scaled(update.MaxSurge, "0", nodes, true) == 0 {
			down := min(nodes, max(1, scaled(update.MaxUnavailable, "1", nodes, true)))
			add(nodes, nodes-down, nodes-down, 0)
			add(nodes, nodes, nodes-down, down)
		}
	}

	return all
}

// counters lists the counters of a status.
func counters(status map[string]any) string {
	var all []string
	for _, key := range fields.Keys(status) {
		if n, ok := status[key].(int64); ok && key != "observedGeneration" && n > 0 {
			all = append(all, fmt.Sprintf("%s %d", key, n))
		}
	}
	return strings.Join(all, ", ")
}
