package kickstart

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/author/fields"
	recipes "lockstep.run/lockstep/internal/probes"
)

// conditions are probes of conditions with the status True.
func conditions(types ...string) []any {
	var out []any
	for _, typ := range types {
		out = append(out, map[string]any{"condition": map[string]any{"type": typ, "status": "True"}})
	}
	return out
}

// recipe returns the recommended probes for a workload.
func recipe(kind string) []any {
	_, text := recipes.Recipe(kind)
	var entries []any
	if err := yaml.Unmarshal([]byte(text), &entries); err != nil {
		panic(err) // it is embedded
	}
	return fields.List(entries[0], "probes")
}

// probesOf returns the probes for the kinds in use, and the kinds without a known probe.
func (m *maker) probesOf(all []*object) (out []any, unknown []string) {
	used := map[schema.GroupKind]bool{}
	for _, o := range all {
		used[o.kind()] = true
	}
	add := func(kind schema.GroupKind, probes []any) {
		out = append(out, map[string]any{
			"selector": map[string]any{"kind": map[string]any{"group": kind.Group, "kind": kind.Kind}}, "probes": probes,
		})
		delete(used, kind)
	}
	for _, known := range kinds().Probes {
		kind := schema.GroupKind{Group: known.Group, Kind: known.Kind}
		switch {
		case !used[kind]:
		case known.CEL != nil:
			add(kind, []any{map[string]any{"cel": known.CEL}})
		case len(known.Conditions) > 0:
			add(kind, conditions(known.Conditions...))
		default:
			add(kind, recipe(kind.Kind))
		}
	}
	byName := func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(used), byName) {
		d := m.defined[kind]
		switch {
		case listed(kinds().ReadyAtOnce, kind):
		case d != nil && len(d.conditions) > 0:
			add(kind, conditions(d.conditions...))
		default:
			unknown = append(unknown, kind.String())
		}
	}
	return out, unknown
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
