package tenants_test

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// A Package never writes outside of its namespace, regardless of its image.
func TestScopeEscape(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	journal := env.Journal(t)
	for name, object := range map[string]string{
		"role":      "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: escape, annotations: {package-operator.run/phase: p}}\nrules: []\n",
		"namespace": "apiVersion: v1\nkind: Namespace\nmetadata: {name: escape, annotations: {package-operator.run/phase: p}}\n",
		"elsewhere": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: escape, namespace: kube-system, annotations: {package-operator.run/phase: p}}\n",
	} {
		image := env.Push(t, "escape-"+name+":v1", harness.Files{"manifest.yaml": harness.Manifest("escape", []string{"p"}, ""), "object.yaml": object})
		u.create(t, harness.Package(u.namespace, name, image))
	}
	for _, name := range []string{"role", "namespace", "elsewhere"} {
		env.WaitCondition(t, u.namespace, name, corev1alpha1.ConditionInvalid, "True")
	}
	if entries := u.changesOutside(t, journal); len(entries) > 0 {
		t.Errorf("changed outside of %s:%s", u.namespace, harness.Lines(entries))
	}
}
