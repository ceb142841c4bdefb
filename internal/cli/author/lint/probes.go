package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/probes"
)

// probeRules are about availability probes.
var probeRules = []Rule{
	{
		"missing-probe", Warning,
		"No probe judges an object of a kind that says in its status whether it works: its phase counts as complete as soon as the object exists.",
		missingProbe,
	},
	{
		"probe-misses-failed-rollout", Warning,
		"The probes of a workload are true while pods of a new template cannot start: a broken upgrade counts as available, and later phases go on.",
		probeMissesFailedRollout,
	},
	{
		"probe-unknown-field", Error,
		"A probe reads a field that objects of its kind do not have: it never succeeds.",
		probeUnknownField,
	},
	{
		"probe-without-objects", Warning,
		"A probe selects no object of the package in any case: a mistyped group, kind or label.",
		probeWithoutObjects,
	},
}

const recipes = ", as the recipes of docs/packages/probes.md do"

// statusKinds say in their status whether they work.
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

func missingProbe(c *oneCase, r reporter) {
	for _, o := range c.objects {
		advice, known := statusKinds[o.kind]
		if !known && c.definesConditions(o.kind) {
			advice, known = "the condition that says that it works, such as Ready", true
		}
		if known && !c.probed(o) {
			r.at(o, "", "Probe "+advice+".", "no probe judges it")
		}
	}
}

// probeMissesFailedRollout evaluates the probes in every state of a rollout that fails.
func probeMissesFailedRollout(c *oneCase, r reporter) {
	set, err := probes.Compile(c.manifest.Spec.AvailabilityProbes)
	if err != nil || !c.first() {
		return
	}
	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		var seen map[string]any
		c.inAnyCase(func(o *object) bool {
			if !selects(probe.Selector, o) {
				return false
			}
			states := failedRollout(o)
			if held := slices.IndexFunc(states, func(live map[string]any) bool { return set.Evaluate(live).Status == probes.True }); held >= 0 {
				seen = states[held]
			}
			return seen != nil
		})
		if seen != nil {
			r.manifest(fmt.Sprintf("spec.availabilityProbes[%d]", i), "Probe "+statusKinds[groupKind(probe.Selector)]+".",
				"%s %s: true before pods of a new template are ready, with %s", probe.Selector.Kind.Kind, text(seen, "metadata", "name"), brief(mapping(seen, "status")))
		}
	}
}

func groupKind(s corev1alpha1.ProbeSelector) schema.GroupKind {
	return schema.GroupKind{Group: s.Kind.Group, Kind: s.Kind.Kind}
}

// definesConditions reports whether the package defines a kind with conditions.
func (c *oneCase) definesConditions(kind schema.GroupKind) bool {
	for _, crd := range c.of(crdKind) {
		if text(crd.Object, "spec", "group") != kind.Group || text(crd.Object, "spec", "names", "kind") != kind.Kind {
			continue
		}
		for _, version := range mappings(crd.Object, "spec", "versions") {
			if at(version, "schema", "openAPIV3Schema", "properties", "status", "properties", "conditions") != nil {
				return true
			}
		}
	}
	return false
}

// dotted is a path without the syntax of jq.
var dotted = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_]*)+$`)

func probeUnknownField(c *oneCase, r reporter) {
	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		for _, o := range c.objects {
			if !selects(probe.Selector, o) {
				continue
			}
			for j, p := range probe.Probes {
				for _, read := range fieldsRead(p) {
					if !c.checker.HasField(o.GroupVersionKind(), strings.Split(read.path, ".")[1:]) {
						r.manifest(fmt.Sprintf("spec.availabilityProbes[%d].probes[%d].%s", i, j, read.field),
							"Name a field of its status.", "%s has no field %s, as far as its schema says", o.kind.Kind, read.path)
					}
				}
			}
		}
	}
}

// read is a path that a probe reads, and where it says so.
type read struct{ field, path string }

// fieldsRead are the plain paths that a probe reads.
func fieldsRead(p corev1alpha1.Probe) []read {
	switch {
	case p.Condition != nil:
		return []read{{"condition", ".status.conditions"}}
	case p.FieldsEqual != nil:
		both := []read{{"fieldsEqual.fieldA", p.FieldsEqual.FieldA}, {"fieldsEqual.fieldB", p.FieldsEqual.FieldB}}
		return slices.DeleteFunc(both, func(f read) bool { return !dotted.MatchString(f.path) })
	}
	return nil
}

func probeWithoutObjects(c *oneCase, r reporter) {
	if !c.first() {
		return
	}
	for i, probe := range c.manifest.Spec.AvailabilityProbes {
		if !c.inAnyCase(func(o *object) bool { return selects(probe.Selector, o) }) {
			r.manifest(fmt.Sprintf("spec.availabilityProbes[%d].selector", i), "Correct it, or remove the probe, or add a test case in which it selects something.",
				"no object of the package is selected")
		}
	}
}
