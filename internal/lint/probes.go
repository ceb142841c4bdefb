package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// probeRules are about availability probes.
var probeRules = []Rule{
	{
		"missing-probe", Warning,
		"No probe judges an object of a kind that says in its status whether it works: its phase counts as complete as soon as the object exists.",
		missingProbe,
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

// statusKinds say in their status whether they work.
var statusKinds = map[schema.GroupKind]string{
	deploymentKind:  `the condition Available, and .status.updatedReplicas equal to .status.replicas`,
	statefulSetKind: `.status.readyReplicas equal to .status.replicas, and .status.updatedReplicas, too`,
	daemonSetKind:   `.status.numberReady equal to .status.desiredNumberScheduled`,
	replicaSetKind:  `.status.readyReplicas equal to .status.replicas`,
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

// definesConditions tells whether the package defines a kind with conditions.
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
