package kickstart

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/loader/presets"
)

// Phases with rules of their own, of those of package presets.
const (
	phasePreInstall     = "pre-install"
	phaseDeploy         = "deploy"
	phaseAdmission      = "admission"
	phaseAdmissionPatch = "admission-patch"
	phaseResources      = presets.PhaseResources
	phaseDependents     = "dependents"
	phaseOther          = presets.PhaseOther
	phasePostInstall    = "post-install"
)

// phases puts every object into a phase, and returns the phases in use in their order.
func (m *maker) phases(all []*object) []string {
	m.hookPhases(all)
	aggregated := aggregatedGroups(all)
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
	used := map[string]bool{}
	for _, o := range all {
		used[o.phase] = true
	}
	return slices.SortedFunc(maps.Keys(used), comparePhases)
}

// comparePhases orders phases; those of hooks are numbered.
func comparePhases(a, b string) int {
	index := func(phase string) int {
		if i := presets.PhaseIndex(phase); i >= 0 {
			return i
		}
		return presets.PhaseIndex(phase[:strings.LastIndex(phase, "-")])
	}
	return cmp.Or(index(a)-index(b), len(a)-len(b), strings.Compare(a, b))
}

// aggregatedGroups returns the API groups of the APIServices of the input.
func aggregatedGroups(all []*object) map[string]bool {
	out := map[string]bool{}
	for _, o := range all {
		if o.is("apiregistration.k8s.io", "APIService") && fields.Get(o.value, "spec", "service") != nil {
			out[fields.Text(o.value, "spec", "group")] = true
		}
	}
	return out
}
