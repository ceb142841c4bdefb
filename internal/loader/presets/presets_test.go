package presets

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/test/require"
)

// Every kind has a phase, and definitions come before the objects that use them.
func TestPhases(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, kind := range []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"}, {Kind: "Namespace"}, {Group: "example.com", Kind: "Shop"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Group: "rbac.authorization.k8s.io", Kind: "Role"},
	} {
		used[PhaseOf(kind)] = true
	}
	require.Equal(t, []string{"crds", "namespaces", "rbac", "deploy", PhaseOther}, Ordered(used))
	if PhaseIndex("none") >= 0 || PhaseIndex(PhaseResources) < 0 || !slices.IsSorted([]int{PhaseIndex("crds"), PhaseIndex("deploy")}) {
		t.Error("PhaseIndex")
	}
}

// Workloads have the recipes. Custom resources of unknown kinds have no probes, and neither have
// kinds that are ready at once.
func TestProbes(t *testing.T) {
	t.Parallel()
	deployment, other := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "example.com", Kind: "Other"}
	used := map[schema.GroupKind]bool{deployment: true, other: true, {Kind: "ConfigMap"}: true}
	got, unknown := Probes(used)
	if len(got) != 1 || len(unknown) != 1 || unknown[0] != other.String() || len(used) != 3 || !Probed(deployment) || Probed(other) {
		t.Errorf("%v, unknown %v", got, unknown)
	}
}
