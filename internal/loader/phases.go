package loader

import (
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
	keys "lockstep.run/lockstep/internal/objects"
)

// phasesOf returns the phases of a manifest, preceded by the phase of the roles.
func phasesOf(spec *manifestsv1alpha1.PackageManifestSpec) []manifestsv1alpha1.PackageManifestPhase {
	if spec.Permissions == nil {
		return spec.Phases
	}
	return slices.Concat([]manifestsv1alpha1.PackageManifestPhase{{Name: manifest.PermissionsPhase}}, spec.Phases)
}

// duplicates returns a problem for each object whose kind and identity an earlier one has. Versions
// do not matter, since the API server stores an object once. Objects for other clusters are
// compared within the class of their phase.
func duplicates(all []*object, scope corev1alpha1.Scope, namespace string) violation.Violations {
	var problems violation.Violations
	type id struct {
		keys.Key
		class string
	}
	first := make(map[id]*object, len(all))
	for _, o := range all {
		key := id{Key: keys.Key{Group: o.gvk.Group, Kind: o.gvk.Kind, Namespace: o.namespace, Name: o.name}}
		if elsewhere(o.class) {
			key.class = o.class
		} else if scope == corev1alpha1.ScopeNamespaced && key.Namespace == "" {
			key.Namespace = namespace
		}
		if other, twice := first[key]; twice {
			// Documents count from 0, as in Package Operator's messages.
			place := fmt.Sprintf("%s idx %d", other.at.Path, other.at.Document-1)
			if other.at.Line > 0 {
				place += fmt.Sprintf(" line %d", other.at.Line)
			}
			problems = append(problems, o.violation(violation.ReasonDuplicateObject, "").Because("Remove one of them.", "it is in %s as well", place))
			continue
		}
		first[key] = o
	}

	return problems
}

// collect sorts the objects into the phases of the manifest. Phases without objects are left out.
// The three results have the same order.
func collect(all []*object, phases []manifestsv1alpha1.PackageManifestPhase) (out []corev1alpha1.ObjectSetTemplatePhase, sources [][]violation.Violation, sensitive [][]bool) {
	byPhase := map[string][]*object{}
	for _, o := range all {
		byPhase[o.phase] = append(byPhase[o.phase], o)
	}

	for _, p := range phases {
		n := len(byPhase[p.Name])
		if n == 0 {
			continue
		}
		stored, at, holds := make([]corev1alpha1.ObjectSetObject, n), make([]violation.Violation, n), make([]bool, n)
		for i, o := range byPhase[p.Name] {
			stored[i], at[i], holds[i] = o.stored, o.at, o.sensitive
		}
		out = append(out, corev1alpha1.ObjectSetTemplatePhase{Name: p.Name, Class: p.Class, Objects: stored})
		sources, sensitive = append(sources, at), append(sensitive, holds)
	}

	return out, sources, sensitive
}
