package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/test/require"
)

const holdings = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {package-operator.run/phase: all}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dropped, annotations: {package-operator.run/phase: all}}
---
`

// If a version with archivalPolicy ReleaseData drops a claim and a ConfigMap, the engine keeps
// the claim without a controller and deletes the ConfigMap. The plan shows both.
func TestPlanOfReleasedData(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "holding")
	files := func(dropped, value string) harness.Files {
		return harness.Files{
			"manifest.yaml": harness.Manifest("holding", []string{"all"}, "  version: 1.0.0\n"),
			"objects.yaml": dropped + "apiVersion: v1\nkind: ConfigMap\n" +
				"metadata: {name: holding, annotations: {package-operator.run/phase: all}}\ndata: {value: " + value + "}\n",
		}
	}
	pkg := harness.Package("holding", "holding", env.Push(t, "holding:v1", files(holdings, "v1")))
	pkg.Spec.ArchivalPolicy = corev1alpha1.ArchivalPolicyReleaseData
	env.Create(t, pkg)
	env.WaitAvailable(t, "holding", "holding")
	next := env.Push(t, "holding:v2", files("", "v2"))

	actions := map[string]dryrun.Action{}
	for _, c := range planOf(t, env, next, "package/holding", "-n", "holding").Cleanup {
		actions[c.Kind+" "+c.Name] = c.Action
	}
	require.Equal(t, map[string]dryrun.Action{"PersistentVolumeClaim data": dryrun.ActionRelease, "ConfigMap dropped": dryrun.ActionDelete}, actions)

	env.SetImage(t, "holding", "holding", next)
	awaitValue(t, env, "holding", "holding", "v2")
	env.WaitAvailable(t, "holding", "holding")
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: "holding", Name: "dropped"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap: %v", err)
	}
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: "holding", Name: "data"}, claim))
	if claim.DeletionTimestamp != nil || len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].Kind != "ObjectSet" {
		t.Errorf("the claim: %v", claim.ObjectMeta)
	}
}
