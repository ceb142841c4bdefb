package kickstart

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader/presets"
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
