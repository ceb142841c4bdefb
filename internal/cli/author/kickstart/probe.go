package kickstart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/internal/loader/violation"
)

// probesOf returns the probes for the used kinds, and the kinds without a known probe. A condition
// that a definition shows might not be set in every configuration of its controller, so a note
// suggests the probe and the author decides.
func (m *maker) probesOf(all []*object) (out []any, unknown []string) {
	used := map[schema.GroupKind]bool{}
	named := map[schema.GroupKind][]string{}
	for _, o := range all {
		if stopped(o) == "" {
			used[o.kind()] = true
		}
		if d := m.defined[o.kind()]; d != nil && len(d.conditions) > 0 && !presets.Probed(o.kind()) {
			named[o.kind()] = append(named[o.kind()], o.String())
		}
	}

	for _, o := range all {
		if field := stopped(o); field != "" && used[o.kind()] {
			m.note("%s never becomes ready with %s, and the probe of its kind waits for it: remove the field, or exclude the object from the probe with a label", o, field)
		} else if field != "" {
			m.note("%s never becomes ready with %s, so no probe waits for it", o, field)
		}
	}

	byName := func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(named), byName) {
		var conditions []string
		for _, typ := range m.defined[kind].conditions {
			conditions = append(conditions, fmt.Sprintf(`{condition: {type: %s, status: "True"}}`, typ))
		}
		m.note("no probe waits for %s, because it is not known whether the condition %s becomes True; if it does, add to spec.availabilityProbes: {selector: {kind: {group: %s, kind: %s}}, probes: [%s]}",
			violation.Listed(named[kind]), strings.Join(m.defined[kind].conditions, ", "), kind.Group, kind.Kind, strings.Join(conditions, ", "))
	}

	out, unknown = presets.Probes(used)
	unknown = slices.DeleteFunc(unknown, func(kind string) bool { return len(named[schema.ParseGroupKind(kind)]) > 0 })
	return out, unknown
}

// stopped returns the field, if any, that keeps a workload from becoming ready.
func stopped(o *object) string {
	switch {
	case o.is("apps", "Deployment") && fields.Bool(o.value, "spec", "paused"):
		return "spec.paused"
	case o.is("batch", "Job") && fields.Bool(o.value, "spec", "suspend"):
		return "spec.suspend"
	}
	return ""
}

// readyColumn matches a printer column that shows the condition for a ready custom resource.
var readyColumn = regexp.MustCompile(`^\s*\.status\.conditions\[\?\(\s*@\.type\s*==\s*["'](Ready|Available)["']\s*\)\]\.status\s*$`)

// columns returns the conditions that every served version of a definition shows.
func columns(o *object) []string {
	var common map[string]bool
	// Clients do not see objects in a version that is not served.
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
