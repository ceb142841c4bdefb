package rollout_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

func decode(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }

func definitionAndResource() harness.Files {
	crd := strings.NewReplacer("gates.", "locks.", "Gate", "Lock", "plural: gates", "plural: locks", "singular: gate", "singular: lock").Replace(gateCRD)
	crd = strings.Replace(crd, "  name: locks.e2e.lockstep.run", "  name: locks.e2e.lockstep.run\n  annotations: {package-operator.run/phase: crds}", 1)
	return harness.Files{
		"manifest.yaml": harness.Manifest("locks", []string{"crds", "resources"}, ""),
		"crd.yaml":      crd,
		"lock.yaml":     "apiVersion: e2e.lockstep.run/v1\nkind: Lock\nmetadata:\n  name: front\n  namespace: default\n  annotations: {package-operator.run/phase: resources}\nspec: {size: 2}\n",
	}
}

// A package with a CRD in the first phase and a resource of it in the second is installed without
// a refused request. As a namespaced Package, it is refused with the reason, and no object is
// written.
func TestResourceAfterItsDefinition(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "crd")
	image := env.Push(t, "locks:1", definitionAndResource())
	audit, err := env.Audit()
	require.NoError(t, err)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)

	env.Create(t, harness.Package("crd", "locks", image))
	invalid := env.WaitCondition(t, "crd", "locks", corev1alpha1.ConditionInvalid, "True")
	if !strings.Contains(invalid.Message, "CustomResourceDefinition") || !strings.Contains(invalid.Message, "ClusterPackage") {
		t.Errorf("the namespaced package reports: %s", invalid.Message)
	}

	env.Create(t, harness.ClusterPackage("locks", image))
	env.WaitAvailable(t, "", "locks")
	entries, err := audit.Since(t.Context(), mark, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes())
	require.NoError(t, err)
	applied := 0
	for _, e := range entries {
		if e.Object.Resource == "locks" || e.Object.Name == "locks.e2e.lockstep.run" {
			applied++
			if e.Code >= 300 {
				t.Errorf("%s %s was answered with %d", e.Verb, e.RequestURI, e.Code)
			}
		}
	}
	if applied != 2 {
		t.Errorf("the CRD and its resource took %d writes, want 2", applied)
	}
}
