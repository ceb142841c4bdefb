package packages_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A small package is not delayed by six large ones of the same registry, which take half a
// minute each to render.
func TestLargePackagesDelayNoSmallOne(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	const objects = `{{ range until 9000 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s-{{ . }}, annotations: {package-operator.run/phase: one}}
{{ end }}`
	large := env.Push(t, "large-packages:v1", harness.Files{
		"manifest.yaml": harness.Manifest("large", []string{"one"}, ""),
		"a.yaml.gotmpl": fmt.Sprintf(objects, "a"), "b.yaml.gotmpl": fmt.Sprintf(objects, "b"),
	})
	small := env.Push(t, "small-package:v1", harness.Phased("small", 1, 1))
	operations := "[" + strings.Repeat(`{"op":"add","path":"/metadata/labels","value":{"a":"b"}},`, 1000)
	var all []client.Object
	for i := range 6 {
		pkg := harness.Package(ns, fmt.Sprintf("large-%d", i), large)
		pkg.Spec.Patches = []corev1alpha1.PackagePatch{{Target: &corev1alpha1.PatchTarget{Kind: "ConfigMap"}, Patch: strings.TrimSuffix(operations, ",") + "]"}}
		env.Create(t, pkg)
		all = append(all, pkg)
	}
	for _, pkg := range all {
		env.WaitCondition(t, ns, pkg.GetName(), corev1alpha1.ConditionReconciling, "True") // queued or rendering
	}
	env.Create(t, harness.Package(ns, "small", small))
	env.WaitAvailable(t, ns, "small")
	for _, pkg := range all {
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(pkg), pkg))
		if loaded := pkg.(*corev1alpha1.Package).Status.Resolved; loaded != nil {
			t.Errorf("%s was rendered before the small one", pkg.GetName())
		}
		require.NoError(t, env.Client.Delete(t.Context(), pkg))
	}
}
