package loader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// provided returns the APIs that a package brings, and checks its manifest's declaration of them.
func (l *load) provided(all []*object) []corev1alpha1.ProvidedAPI {
	defined := definitionsOf(all)
	var out []corev1alpha1.ProvidedAPI
	for _, d := range defined {
		for _, version := range d.served {
			api := corev1alpha1.ProvidedAPI{APIVersion: d.kind.Group + "/" + version, Kind: d.kind.Kind}
			if manifest.IsAPI(api) {
				out = append(out, api)
			}
		}
	}

	// These checks would mislead after other problems, since an object that failed is not in the
	// list.
	l.ownAPIs(out)
	if len(l.problems) == 0 {
		l.declared(all, defined)
	}

	for _, api := range l.unit.result.Manifest.Spec.Provides {
		out = append(out, corev1alpha1.ProvidedAPI(api))
	}

	slices.SortFunc(out, func(a, b corev1alpha1.ProvidedAPI) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	out = slices.Compact(out)
	if n := len(out); n > limits.ProvidedAPIs {
		l.warnings = append(l.warnings, l.unit.result.At(violation.ReasonLimit, "").Because("Split the package.",
			"the package brings %d APIs; the first %d of them are found by dependencies", n, limits.ProvidedAPIs))
		out = slices.Clone(out[:limits.ProvidedAPIs])
	}

	return out
}

// ownAPIs refuses dependencies on APIs that the package itself brings, because it would wait for
// itself.
func (l *load) ownAPIs(provided []corev1alpha1.ProvidedAPI) {
	for i, d := range l.unit.result.Manifest.Spec.Dependencies {
		if d.API != nil && slices.Contains(provided, corev1alpha1.ProvidedAPI{APIVersion: d.API.APIVersion, Kind: d.API.Kind}) {
			l.add(l.unit.result.At(violation.ReasonManifestInvalid, fmt.Sprintf("spec.dependencies[%d].api", i)).
				Because("Remove it.", "the package brings %s %s itself", d.API.APIVersion, d.API.Kind))
		}
	}
}

// declared checks spec.provides against the definitions and APIServices of the package. An API that
// neither brings might be made by the package at runtime, so this is only a warning for its author.
func (l *load) declared(all []*object, defined map[schema.GroupKind]*definition) {
	groups, aggregated := map[string]bool{}, map[schema.GroupVersion]bool{}
	for kind := range defined {
		groups[kind.Group] = true
	}

	for _, o := range all {
		aggregated[o.aggregates] = true
	}

	r := l.unit.result
	for i, api := range r.Manifest.Spec.Provides {
		gv, err := schema.ParseGroupVersion(api.APIVersion)
		if err != nil || aggregated[gv] {
			continue
		}
		field := fmt.Sprintf("spec.provides[%d]", i)
		d := defined[schema.GroupKind{Group: gv.Group, Kind: api.Kind}]
		switch {
		case d != nil && slices.Contains(d.served, gv.Version):
		case d != nil:
			l.add(r.At(violation.ReasonManifestInvalid, field+".apiVersion").Because("Remove the entry, or serve the version.",
				"the CustomResourceDefinition of %s in the package serves %s, not %s", d.kind, cmp.Or(strings.Join(d.served, ", "), "no version"), gv.Version))
		case groups[gv.Group]:
			l.add(r.At(violation.ReasonManifestInvalid, field+".kind").Because("Remove the entry, or bring its CustomResourceDefinition.",
				"the package brings CustomResourceDefinitions of %s, but none of %s", gv.Group, api.Kind))
		case l.opts.Environment == nil:
			l.warnings = append(l.warnings, r.At(violation.ReasonManifestInvalid, field).Because(
				"Check the entry, unless the package makes the API when it runs.", "no CustomResourceDefinition or APIService in the package brings %s %s", api.APIVersion, api.Kind))
		}
	}
}
