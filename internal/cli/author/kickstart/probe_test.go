package kickstart_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// Workloads get the recipes, which wait for the end of a rollout.
func TestProbesOfWorkloads(t *testing.T) {
	t.Parallel()
	for kind, apiVersion := range map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "ReplicationController": "v1"} {
		text := "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: web, namespace: shop}\n" +
			"spec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'example.com/web:v1'}]}\n"
		if kind == "ReplicationController" {
			text = "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n"
		}
		want, _ := probes.Recipe(kind)
		found := false
		for _, entry := range load(t, made(t, kickstart.Options{}, text)).Manifest.Spec.AvailabilityProbes {
			if entry.Selector.Kind.Kind == kind {
				found = true
				require.Equal(t, want, entry, kind)
			}
		}
		if !found {
			t.Errorf("%s: no probes", kind)
		}
	}
}
