package presets

import (
	_ "embed" // kinds.yaml
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	recipes "lockstep.run/lockstep/internal/probes"
)

//go:embed kinds.yaml
var kindsFile []byte

// known is the content of kinds.yaml.
type known struct {
	Phases []struct {
		Name  string
		Kinds []string
	}
	Probes []struct {
		Group, Kind string
		Conditions  []string
		CEL         map[string]any
	}
	ReadyAtOnce, ClusterScoped []string
}

// kinds decodes the file at its first use, since most commands do not need it.
var kinds = sync.OnceValue(func() (k known) {
	if err := yaml.UnmarshalStrict(kindsFile, &k); err != nil {
		panic(err) // it is embedded
	}
	return k
})

// These phases have special rules.
const (
	// PhaseResources has objects of kinds that the package defines.
	PhaseResources = "resources"
	// PhaseOther has objects of all other kinds.
	PhaseOther = "other"
)

// listed reports whether a list has a kind as group/Kind, or its group.
func listed(list []string, kind schema.GroupKind) bool {
	return slices.Contains(list, kind.Group+"/"+kind.Kind) || slices.Contains(list, kind.Group)
}

// ClusterScoped reports whether a kind of Kubernetes is known to be cluster-scoped.
func ClusterScoped(kind schema.GroupKind) bool { return listed(kinds().ClusterScoped, kind) }

// PhaseIndex returns the position of a phase, or -1.
func PhaseIndex(name string) int {
	for i, phase := range kinds().Phases {
		if phase.Name == name {
			return i
		}
	}
	return -1
}

// PhaseOf returns the phase of a kind, or else of its group.
func PhaseOf(kind schema.GroupKind) string {
	for _, key := range []string{kind.Group + "/" + kind.Kind, kind.Group} {
		for _, phase := range kinds().Phases {
			if slices.Contains(phase.Kinds, key) {
				return phase.Name
			}
		}
	}
	return PhaseOther
}

// Probed reports whether a kind has a probe that is known to become true.
func Probed(kind schema.GroupKind) bool {
	for _, known := range kinds().Probes {
		if known.Group == kind.Group && known.Kind == kind.Kind {
			return true
		}
	}
	return false
}

// Probes returns availability probes for kinds, as JSON values, and the kinds without a known
// probe.
func Probes(used map[schema.GroupKind]bool) (out []any, unknown []string) {
	used = maps.Clone(used)
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
			var probes []any
			for _, typ := range known.Conditions {
				probes = append(probes, map[string]any{"condition": map[string]any{"type": typ, "status": "True"}})
			}
			add(kind, probes)
		default: // a workload, with recommended probes
			_, text := recipes.Recipe(kind.Kind)
			var entries []struct{ Probes []any }
			if err := yaml.Unmarshal([]byte(text), &entries); err != nil {
				panic(err) // it is embedded
			}
			add(kind, entries[0].Probes)
		}
	}

	byName := func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(used), byName) {
		if !listed(kinds().ReadyAtOnce, kind) {
			unknown = append(unknown, kind.String())
		}
	}

	return out, unknown
}

// Ordered returns the presets' phases that are used, in order.
func Ordered(used map[string]bool) []string {
	var names []string
	for _, phase := range kinds().Phases {
		if used[phase.Name] {
			names = append(names, phase.Name)
		}
	}
	return names
}

// Reference returns the rules by kind, for the documentation: phases with their kinds, kinds with
// probes, and kinds, or groups of kinds, that are ready when they are written. Each is group/Kind,
// or group for all other kinds of it.
func Reference() (phases [][]string, probed []schema.GroupKind, readyAtOnce []string) {
	for _, phase := range kinds().Phases {
		phases = append(phases, append([]string{phase.Name}, phase.Kinds...))
	}
	for _, known := range kinds().Probes {
		probed = append(probed, schema.GroupKind{Group: known.Group, Kind: known.Kind})
	}
	return phases, probed, kinds().ReadyAtOnce
}
