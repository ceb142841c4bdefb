package probes

import (
	"embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// recipes are probes of the Kubernetes workloads, one file per kind. They are False from a change
// of the template until its rollout is complete. A status omits counters of 0, so they need a
// default. The recipes do not wait for pods that the strategy does not replace.
//
//go:embed recipes/*.yaml
var recipes embed.FS

// Recipe returns the availabilityProbes entry for a kind of workload, and its YAML. name is the
// kind, in any case. Recipe panics on an unknown one.
func Recipe(name string) (entry Entry, text string) {
	data, err := recipes.ReadFile("recipes/" + strings.ToLower(name) + ".yaml")
	if err != nil {
		panic(err) // all callers pass constants
	}
	var entries []Entry
	if err := yaml.UnmarshalStrict(data, &entries); err != nil || len(entries) != 1 {
		panic(fmt.Errorf("recipe %s: %d entries, %w", name, len(entries), err))
	}
	return entries[0], string(data)
}
