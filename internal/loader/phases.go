package loader

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
	keys "lockstep.run/lockstep/internal/objects"
)

// duplicates reports objects that stand twice in a package.
func duplicates(all []*object, scope corev1alpha1.Scope, namespace string) violation.Violations {
	var problems violation.Violations
	first := make(map[keys.Key]*object, len(all))
	for _, o := range all {
		key := keys.Key{Group: o.gvk.Group, Kind: o.gvk.Kind, Namespace: o.namespace, Name: o.name}
		if scope == corev1alpha1.ScopeNamespaced && key.Namespace == "" {
			key.Namespace = namespace
		}
		if other, twice := first[key]; twice {
			v := o.at
			v.Reason = violation.ReasonDuplicateObject
			v.Details = "it is in " + place(other.at) + " as well"
			v.Remedy = "Remove one of them."
			problems = append(problems, v)
			continue
		}
		first[key] = o
	}
	return problems
}

func place(at violation.Violation) string {
	text := fmt.Sprintf("%s idx %d", at.Path, at.Document-1)
	if at.Line > 0 {
		text += fmt.Sprintf(" line %d", at.Line)
	}
	return text
}

// scopesOfDefinitions checks objects of kinds that the package itself defines.
func scopesOfDefinitions(all []*object, scope corev1alpha1.Scope) violation.Violations {
	defined := definitionsOf(all)
	var problems violation.Violations
	for _, o := range all {
		d := defined[o.gvk.GroupKind()]
		if d == nil || scope != corev1alpha1.ScopeCluster || !d.namespaced || o.namespace != "" {
			continue
		}
		v := o.at
		v.Reason, v.Field = violation.ReasonObjectScope, "metadata.namespace"
		v.Details = o.gvk.Kind + " is namespaced, and a ClusterPackage has no namespace of its own"
		v.Remedy = "Set metadata.namespace, or spec.defaultNamespace of the ClusterPackage."
		problems = append(problems, v)
	}
	return problems
}

// definitionsOf returns the kinds that a package brings.
func definitionsOf(all []*object) map[schema.GroupKind]*definition {
	defined := map[schema.GroupKind]*definition{}
	for _, o := range all {
		if o.defines != nil {
			defined[o.defines.kind] = o.defines
		}
	}
	return defined
}

// tooEarly warns of objects that do not come after their namespace or definition.
func tooEarly(all []*object, phases []manifestsv1alpha1.PackageManifestPhase) violation.Violations {
	number := map[string]int{}
	for i, p := range phases {
		number[p.Name] = i
	}
	definitions, namespaces := map[schema.GroupKind]*object{}, map[string]*object{}
	for _, o := range all {
		if o.defines != nil {
			definitions[o.defines.kind] = o
		}
		if o.gvk.GroupKind() == namespaceKind {
			namespaces[o.name] = o
		}
	}
	var warnings violation.Violations
	for _, o := range all {
		for _, needed := range []*object{definitions[o.gvk.GroupKind()], namespaces[o.namespace]} {
			if needed == nil || number[needed.phase] < number[o.phase] {
				continue
			}
			v := o.at
			v.Reason = violation.ReasonObjectInvalid
			v.Details = fmt.Sprintf("phase %q does not come after phase %q, which brings the %s that it needs", o.phase, needed.phase, needed.gvk.Kind)
			v.Remedy = "Put it into a later phase."
			warnings = append(warnings, v)
		}
	}
	return warnings
}

// collect puts objects into the phases of the manifest that have some.
func collect(all []*object, phases []manifestsv1alpha1.PackageManifestPhase) (out []corev1alpha1.ObjectSetTemplatePhase, sources [][]Source, sensitive [][]bool) {
	byPhase, sourcesByPhase, sensitiveByPhase := map[string][]corev1alpha1.ObjectSetObject{}, map[string][]Source{}, map[string][]bool{}
	for _, o := range all {
		byPhase[o.phase] = append(byPhase[o.phase], o.stored)
		sensitiveByPhase[o.phase] = append(sensitiveByPhase[o.phase], o.sensitive)
		sourcesByPhase[o.phase] = append(sourcesByPhase[o.phase], Source{Path: o.at.Path, Document: o.at.Document, Line: o.at.Line, Object: o.at.Object})
	}
	for _, p := range phases {
		if len(byPhase[p.Name]) > 0 {
			out = append(out, corev1alpha1.ObjectSetTemplatePhase{Name: p.Name, Class: p.Class, Objects: byPhase[p.Name]})
			sources = append(sources, sourcesByPhase[p.Name])
			sensitive = append(sensitive, sensitiveByPhase[p.Name])
		}
	}
	return out, sources, sensitive
}
