package probes

import (
	"embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Probes of the workloads of Kubernetes, a file for each kind. They are false
// from the moment that the controller has seen a new template until its rollout
// is complete: as many replicas as wanted, all of that template, all available.
// Counters that are 0 are left out of a status, so they are read with a default,
// and a status of a new object has other counters before its controller has seen
// it. What a strategy leaves alone (OnDelete, a partition) is not waited for.
//
//go:embed recipes/*.yaml
var recipes embed.FS

// Recipe returns the entry of availabilityProbes for a workload, and its YAML.
// The name is its kind in lower case.
func Recipe(name string) (entry corev1alpha1.ObjectSetProbe, text string) {
	data, err := recipes.ReadFile("recipes/" + strings.ToLower(name) + ".yaml")
	if err != nil {
		panic(err) // it is named by constants
	}
	var entries []corev1alpha1.ObjectSetProbe
	if err := yaml.UnmarshalStrict(data, &entries); err != nil || len(entries) != 1 {
		panic(fmt.Errorf("recipe %s: %d entries, %w", name, len(entries), err))
	}
	return entries[0], string(data)
}
