package probes

import (
	"embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// recipes are probes of the Kubernetes workloads, one file per kind: False from a new
// template until its rollout is complete. Counters of 0 are omitted from a status and need
// a default; pods that the strategy does not replace are not waited for.
//
//go:embed recipes/*.yaml
var recipes embed.FS

// Recipe returns the entry of availabilityProbes for a kind of workload, and its YAML.
func Recipe(name string) (entry Entry, text string) {
	data, err := recipes.ReadFile("recipes/" + strings.ToLower(name) + ".yaml")
	if err != nil {
		panic(err) // it is named by constants
	}
	var entries []Entry
	if err := yaml.UnmarshalStrict(data, &entries); err != nil || len(entries) != 1 {
		panic(fmt.Errorf("recipe %s: %d entries, %w", name, len(entries), err))
	}
	return entries[0], string(data)
}
