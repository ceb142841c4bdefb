package kickstart

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/internal/loader/violation"
)

// The phases of package presets that have rules here.
const (
	phaseConfiguration  = "configuration"
	phasePreInstall     = "pre-install"
	phaseDeploy         = "deploy"
	phaseAdmission      = "admission"
	phaseAdmissionPatch = "admission-patch"
	phaseResources      = presets.PhaseResources
	phaseDependents     = "dependents"
	phaseOther          = presets.PhaseOther
	phasePostInstall    = "post-install"
)

// phases puts every object into a phase, and returns the used phases in order.
func (m *maker) phases(all []*object) []string {
	m.hookPhases(all)
	// The groups of the input's APIServices.
	aggregated := map[string]bool{}
	for _, o := range all {
		if o.is("apiregistration.k8s.io", "APIService") && fields.Get(o.value, "spec", "service") != nil {
			aggregated[fields.Text(o.value, "spec", "group")] = true
		}
	}

	for _, o := range all {
		switch {
		case o.phase != "":
		case aggregated[o.gvk.Group]:
			o.phase = phaseOther
		case m.defined[o.kind()] != nil:
			o.phase = phaseResources
		default:
			o.phase = presets.PhaseOf(o.kind())
		}
	}

	m.patchJobs(all)
	m.dependents(all)
	m.alignPhases(all)
	used := map[string]bool{}
	for _, o := range all {
		used[o.phase] = true
	}

	return slices.SortedFunc(maps.Keys(used), comparePhases)
}

// comparePhases orders phases. The phases of hooks are numbered.
func comparePhases(a, b string) int {
	// A hook's phase has a number as its suffix, and sorts like the phase without it.
	index := func(phase string) int {
		if i := presets.PhaseIndex(phase); i >= 0 {
			return i
		}
		return presets.PhaseIndex(phase[:strings.LastIndex(phase, "-")])
	}
	return cmp.Or(index(a)-index(b), len(a)-len(b), strings.Compare(a, b))
}

// alignPhases moves objects between phases until no probed object is in an earlier phase than an
// object it needs. Objects without probes move to the object that needs them, as does a webhook
// configuration or an APIService that its server can complete. Probed workloads move to the phase
// of the objects they need. Objects that need one another end up in one phase.
func (m *maker) alignPhases(all []*object) {
	needs := gates.Needs(all)
	later := map[*object]bool{}
	// A move can break the order of another pair, so the pairs are compared until no object moves.
	for changed := true; changed; {
		changed = false
		for _, n := range needs {
			if !presets.Probed(n.Of.kind()) || comparePhases(n.On.phase, n.Of.phase) <= 0 {
				continue
			}
			changed = true
			moved, to := n.Of, n.On.phase
			if earlier := !presets.Probed(n.On.kind()) || n.On.is("apiregistration.k8s.io", "APIService"); earlier && !later[n.On] {
				moved, to = n.On, n.Of.phase
			} else {
				later[moved] = true
			}

			m.note("%s %s %s: %s is in phase %s, so that neither waits for a later phase", n.Of, n.Why, n.On, moved, to)
			moved.phase = to
		}
	}

	m.beforeWebhooks(all)
}

// beforeWebhooks moves objects without probes out of a phase of workloads that also has a webhook
// configuration. Until its server is ready, the API server might refuse these objects, and the
// server might not start without them.
func (m *maker) beforeWebhooks(all []*object) {
	for _, config := range gates.Filter(all, func(o *object) bool { return o.gvk.Group == "admissionregistration.k8s.io" && o.phase == phaseDeploy }) {
		for _, o := range all {
			if o.phase == phaseDeploy && o != config && !presets.Probed(o.kind()) && presets.PhaseOf(o.kind()) == phaseDeploy && gates.Rejects(config, o) {
				o.phase = phaseConfiguration
				m.note("%s is matched by webhooks of %s, which fail until their server is ready: it is in the earlier phase %s", o, config, o.phase)
			}
		}
	}
}

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
