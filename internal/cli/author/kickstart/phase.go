package kickstart

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
)

// Phases with rules of their own; kinds.yaml has all of them.
const (
	phasePreInstall     = "pre-install"
	phaseDeploy         = "deploy"
	phaseAdmission      = "admission"
	phaseAdmissionPatch = "admission-patch"
	phaseResources      = "resources"
	phaseDependents     = "dependents"
	phaseOther          = "other"
	phasePostInstall    = "post-install"
)

// phaseIndex returns the position of a phase, or -1.
func phaseIndex(name string) int {
	for i, phase := range kinds().Phases {
		if phase.Name == name {
			return i
		}
	}
	return -1
}

// presetOf returns the phase of a kind, or else of its group.
func presetOf(kind schema.GroupKind) string {
	for _, key := range []string{kind.Group + "/" + kind.Kind, kind.Group} {
		for _, phase := range kinds().Phases {
			if slices.Contains(phase.Kinds, key) {
				return phase.Name
			}
		}
	}
	return phaseOther
}

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
			o.phase = presetOf(o.kind())
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
		if i := phaseIndex(phase); i >= 0 {
			return i
		}
		return phaseIndex(phase[:strings.LastIndex(phase, "-")])
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
