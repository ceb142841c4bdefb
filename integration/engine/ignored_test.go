package engine_test

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// ignoring sets the ignored fields, which other clients own.
func ignoring(pointers ...string) func(*corev1alpha1.ObjectSetObject) {
	return func(o *corev1alpha1.ObjectSetObject) {
		annotations := fmt.Sprintf(`"metadata":{"annotations":{%q:%q},`, corev1alpha1.IgnoredFieldsAnnotation, strings.Join(pointers, "\n"))
		o.Object.Raw = []byte(strings.Replace(string(o.Object.Raw), `"metadata":{`, annotations, 1))
	}
}

// more adds an entry to the data.
func more(key, value string) func(*corev1alpha1.ObjectSetObject) {
	return func(o *corev1alpha1.ObjectSetObject) {
		o.Object.Raw = []byte(strings.Replace(string(o.Object.Raw), `"data":{`, fmt.Sprintf(`"data":{%q:%q,`, key, value), 1))
	}
}

// An ignored field is written once. Later changes by other clients are not drift, and upgrades,
// rollbacks and a restart do not revert them. All other fields still belong to the package.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	first := phase("one", configMap("object", "v1", more("other", "v1"), ignoring("/data/value")), configMap("witness", "v1"))
	dep := install(t, deployment(ns, first))
	if cm := get(t, ns, "object"); cm.Data["value"] != "v1" {
		t.Fatalf("it was not written at the creation: %v", cm.Data)
	}
	env.Settle(t, ns)
	j := env.Journal(t)
	edit(t, ns, "object", `{"data":{"value":"theirs"}}`)
	edit(t, ns, "witness", `{"data":{"value":"drifted"}}`)
	awaitValue(t, ns, "witness", "v1")
	j.Rest(t, ns)
	if requests := j.Requests(t, ns, named("object")); len(requests) != 0 {
		t.Errorf("a field that others own costs requests:%s", harness.Lines(requests))
	}
	data := func(when, value, other string) {
		t.Helper()
		if cm := get(t, ns, "object"); cm.Data["value"] != value || cm.Data["other"] != other {
			t.Errorf("%s: it has %v, want value %q, other %q", when, cm.Data, value, other)
		}
	}
	before := get(t, ns, "object")
	before.Data["other"] = "v1"
	edit(t, ns, "object", `{"data":{"other":"drifted"}}`)
	awaitSame(t, before)
	data("drift of another field", "theirs", "v1")

	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("object", "v2", more("other", "v2"), ignoring("/data/value")), configMap("witness", "v2"))}
	})
	awaitValue(t, ns, "witness", "v2")
	awaitRollout(t, dep)
	data("an upgrade", "theirs", "v2")
	edit(t, ns, "object", `{"data":{"value":null}}`)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{first}
	})
	awaitValue(t, ns, "witness", "v1")
	awaitRollout(t, dep)
	data("undone, with the field removed by others", "", "v1")

	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("object", "v3", more("other", "v3")), configMap("witness", "v3"))}
	})
	awaitValue(t, ns, "object", "v3")
}

// An adopted object keeps its ignored fields. A template must not ignore fields of the metadata.
func TestIgnoredFieldsOfAdopted(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	foreign(t, ns, "object", false)
	dep := deployment(ns, phase("one", configMap("object", "v1", more("other", "v1"), ignoring("/data/value"), collision(corev1alpha1.CollisionProtectionIfNoController))))
	install(t, dep)
	if cm := get(t, ns, "object"); cm.Data["value"] != "theirs" || cm.Data["other"] != "v1" {
		t.Errorf("it has %v", cm.Data)
	}
	wrong := set(ns, "wrong", 1, phase("one", configMap("wrong", "v1", ignoring("/metadata/name"))))
	env.Create(t, wrong)
	await(t, wrong, "to be refused", func(s *corev1alpha1.ObjectSet) error {
		return harness.HasCondition(s, corev1alpha1.ConditionAvailable, "False", "", `"/metadata/name" is in the metadata`)
	})
	absent(t, ns, "wrong")
}
