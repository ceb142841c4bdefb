package dependencies_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// created returns the names of the objects of a resource, in the order of the manager's first
// writes.
func created(entries []sandbox.Entry, resource string) []string {
	var names []string
	for _, e := range entries {
		if e.Object.Resource == resource && e.Object.Subresource == "" && (e.Verb == "create" || e.Verb == "patch") && e.Code < 300 && !slices.Contains(names, e.Object.Name) {
			names = append(names, e.Object.Name)
		}
	}
	return names
}

// A chain is installed in one pass, and rolled out from its end: the objects of a package are
// written after its dependencies are available. At rest there are no requests.
func TestChain(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	for i := 1; i < 4; i++ {
		offer(t, ns, fmt.Sprintf("p%d", i), release{Version: "1.0.0", Gated: true, Needs: []corev1alpha1.Dependency{on("next", fmt.Sprintf("p%d", i+1), "^1")}})
	}
	offer(t, ns, "p4", release{Version: "1.2.0", Gated: true}, of("2.0.0"))
	from := env.Journal(t)
	env.Create(t, wish(ns, "shop", "p1", "^1"))
	names := []string{"shop-next-next-next", "shop-next-next", "shop-next", "shop"}
	for i, name := range names {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		await(t, obj, "is there", func(*corev1.ConfigMap) error { return nil })
		if i == 0 {
			awaitRefusal(t, ns, "shop", corev1alpha1.ReasonWaitingForDependencies, "shop-next")
		}
		if got := created(from.Rest(t, ns), "configmaps"); len(got) != i+1 {
			t.Errorf("while %s is not available there are %v", name, got)
		}
		harness.Edit(t, env, obj, func(o *corev1.ConfigMap) { o.Annotations = map[string]string{"ready": "true"} })
	}
	pkg := awaitVersion(t, ns, "shop", "1.0.0")
	if got := dependency(pkg, "next"); got != "InstalledByThisPackage 1.0.0 Package/shop-next" {
		t.Error(got)
	}
	require.NoError(t, harness.HasCondition(pkg, corev1alpha1.ConditionDependenciesReady, metav1.ConditionTrue, corev1alpha1.ReasonDependenciesReady))
	require.Equal(t, names, created(from.Rest(t, ns), "configmaps"))
	env.Journal(t).Silent(t, ns)
}
