package drift

import (
	"testing"

	"lockstep.run/lockstep/internal/objects/apinames"
)

// TestExceeds distinguishes a former content on an object from fields that others and the API
// server added, using the API server's own managedFields.
func TestExceeds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "apis__apps__v1.json", deploymentKind)
	c.apply("package-operator", deployment)
	template := c.object(deployment).Object
	c.update("kubelet", func(obj map[string]any) {
		defaulted(obj)
		fieldsAt(t, obj, "metadata", "labels")["theirs"] = "1"
		fieldsAt(t, obj, "spec")["paused"] = true
	})
	if Exceeds(apinames.Default, template, c.live().GetManagedFields()) {
		t.Error("the applied content is the template")
	}

	for reason, remove := range map[string]func(obj map[string]any){
		"a label":         func(obj map[string]any) { delete(fieldsAt(t, obj, "metadata", "labels"), "app") },
		"a field":         func(obj map[string]any) { delete(fieldsAt(t, obj, "spec"), "replicas") },
		"a part of a map": func(obj map[string]any) { delete(fieldsAt(t, obj, "spec", "template", "spec"), "nodeSelector") },
		"a field in a list": func(obj map[string]any) {
			delete(fieldsAt(t, obj, "spec", "template", "spec", "containers", 0), "args")
		},
		"an element of a list": func(obj map[string]any) {
			containers := fieldsAt(t, obj, "spec", "template", "spec", "containers", 0)
			containers["env"] = at(t, containers, "env").([]any)[:1]
		},
	} {
		former := copyOf(template)
		remove(former)
		if !Exceeds(apinames.Default, former, c.live().GetManagedFields()) {
			t.Errorf("%s left the template", reason)
		}
	}

	null := copyOf(template)
	fieldsAt(t, null, "spec")["replicas"] = nil
	delete(fieldsAt(t, null, "metadata"), "ownerReferences")
	if Exceeds(apinames.Default, null, c.live().GetManagedFields()) {
		t.Error("a null is not a removed field, and owner references are ignored")
	}

	null["apiVersion"] = "apps/v2"
	delete(null, "spec")
	if Exceeds(apinames.Default, null, c.live().GetManagedFields()) {
		t.Error("an entry in another version is ignored")
	}
}
