package lint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
