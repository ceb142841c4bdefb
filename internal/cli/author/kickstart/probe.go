package kickstart

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/loader/presets"
)

// probesOf returns the probes for the kinds in use, and the kinds without a known probe.
func (m *maker) probesOf(all []*object) (out []any, unknown []string) {
	used, shown := map[schema.GroupKind]bool{}, map[schema.GroupKind][]string{}
	for _, o := range all {
		used[o.kind()] = true
	}
	for kind, d := range m.defined {
		shown[kind] = d.conditions
	}
	return presets.Probes(used, shown)
}

// readyColumn is a printer column that shows a condition by which custom resources report
// that they are ready.
var readyColumn = regexp.MustCompile(`^\s*\.status\.conditions\[\?\(\s*@\.type\s*==\s*["'](Ready|Available)["']\s*\)\]\.status\s*$`)

// columns returns the conditions that every served version of a definition shows.
func columns(o *object) []string {
	var common map[string]bool
	for _, version := range fields.List(o.value, "spec", "versions") {
		if !fields.Bool(version, "served") {
			continue
		}
		found := map[string]bool{}
		for _, column := range fields.List(version, "additionalPrinterColumns") {
			if match := readyColumn.FindStringSubmatch(fields.Text(column, "jsonPath")); match != nil && (common == nil || common[match[1]]) {
				found[match[1]] = true
			}
		}
		common = found
	}
	return slices.Sorted(maps.Keys(common))
}
