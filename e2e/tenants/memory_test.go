package tenants_test

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// bombOf returns a package of so many ConfigMaps with a text of a size.
func bombOf(number, size int, text string) harness.Files {
	files := harness.Files{"manifest.yaml": harness.Manifest("bomb", []string{"p"}, "")}
	for i := range number {
		files[fmt.Sprintf("object-%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb-%d, annotations: {package-operator.run/phase: p}}\ndata: {text: %s}\n",
			i, strings.Repeat(text, size/len(text)))
	}
	return files
}

// A package may be large; one that is too large for the manager's memory is refused, and says what to do.
func TestPackageMemory(t *testing.T) {
	t.Parallel()
	u, other := newTenant(t, env, ""), newTenant(t, env, "-other")
	large := env.Push(t, "package-memory-large:v1", bombOf(12, 900<<10, "x"))
	bomb := bombOf(1, 10, "x")
	for i := range 3 {
		bomb[fmt.Sprintf("notes-%d.txt", i)] = strings.Repeat("x", 12<<20)
	}
	tooLarge := env.Push(t, "package-memory-bomb:v1", bomb)
	for i := range 4 {
		u.create(t, harness.Package(u.namespace, fmt.Sprintf("bomb-%d", i), tooLarge))
	}
	u.create(t, harness.Package(u.namespace, "large", large))
	other.create(t, harness.Package(other.namespace, "bomb", env.Push(t, "package-memory-small:v1", bombOf(1, 10, "x"))))
	env.WaitCondition(t, other.namespace, "bomb", corev1alpha1.ConditionAvailable, "True")
	if c := env.WaitCondition(t, u.namespace, "bomb-3", corev1alpha1.ConditionUnpacked, "False"); !strings.Contains(c.Message, "raise GOMEMLIMIT and the memory limit of the manager") {
		t.Errorf("it is refused with %s: %s", c.Reason, c.Message)
	}
	env.WaitCondition(t, u.namespace, "large", corev1alpha1.ConditionAvailable, "True")
}
