package kickstart_test

import (
	"strings"
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

// No probe waits for a workload that the input itself holds back. If other workloads of its kind
// need a probe, a note explains it.
func TestStoppedWorkloads(t *testing.T) {
	t.Parallel()
	const paused, running = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {paused: true}\n", "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\nspec: {replicas: 0}\n"
	for text, want := range map[string]string{
		paused:           "Deployment shop/a never becomes ready with spec.paused, so no probe waits for it",
		paused + running: "Deployment shop/a never becomes ready with spec.paused, and the probe of its kind waits for it",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {suspend: true}\n": "Job shop/a never becomes ready with spec.suspend, so no probe waits for it",
	} {
		result := made(t, kickstart.Options{Namespace: "shop"}, text)
		probed := strings.Contains(string(result.Files["manifest.yaml"]), "group: apps")
		if !strings.Contains(strings.Join(result.Notes, "\n"), want) || probed != (text == paused+running) || len(result.Unprobed) > 0 {
			t.Errorf("%s: notes %q, unprobed %q, probed %t", text, result.Notes, result.Unprobed, probed)
		}
	}
}
