package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// value is a version that a slot can have.
type value struct {
	version string
	parsed  *semver.Version // nil if version is not valid
	offer   *Offer          // nil for an installed version
}

// place is a package as a namespace sees it.
type place struct{ namespace, name string }

// market reads each part of the catalogue once. Reads are steps of the resolution.
type market struct {
	input       *Input
	spent       *int              // steps so far
	listed      map[place][]Offer // in the catalogue's order
	offered     map[place][]value
	leads       map[place][]want // the needs of all versions of a package
	providers   map[provided][]string
	constraints map[string]*versions.Constraint // nil for invalid text
	awaited     map[string]bool                 // packages and APIs that were looked up
	within      map[within]bool
	choices     map[asked]versions.Choice
}

// asked is a selection from the offers of a place, as text.
type asked struct {
	place
	version, prereleases string
}

// want is the target of a dependency without its range: a package, or else an API.
type want struct {
	name string
	api  corev1alpha1.ProvidedAPI
}

// wantOf returns the target of a dependency. A name outweighs an API.
func wantOf(d *corev1alpha1.Dependency) want {
	switch {
	case d.Package != nil && d.Package.Name != "":
		return want{name: d.Package.Name}
	case d.API != nil:
		return want{api: corev1alpha1.ProvidedAPI{APIVersion: d.API.APIVersion, Kind: d.API.Kind}}
	}
	return want{}
}

// provided is an API as a namespace sees its providers.
type provided struct {
	namespace string
	api       corev1alpha1.ProvidedAPI
}

// list reads the offers of the catalogue.
func (m *market) list(at place) []Offer {
	all, ok := m.listed[at]
	if !ok && m.input.Catalogue != nil {
		all = m.input.Catalogue.Offers(at.namespace, at.name)
		m.listed[at] = all
		*m.spent += len(all)
	}

	return all
}

// wants returns, without duplicates, the needs of all versions that can be installed in a
// namespace.
func (m *market) wants(at place) []want {
	if all, ok := m.leads[at]; ok {
		return all
	}

	seen, all := map[want]bool{}, []want{}
	for _, v := range m.versions(at) {
		*m.spent += len(v.offer.Dependencies)
		for k := range v.offer.Dependencies {
			if w := wantOf(&v.offer.Dependencies[k]); !seen[w] {
				seen[w] = true
				all = append(all, w)
			}
		}
	}

	m.leads[at] = all
	return all
}

// versions returns the versions that can be installed in a namespace, including retracted ones,
// starting with the highest.
func (m *market) versions(at place) []value {
	if all, ok := m.offered[at]; ok {
		return all
	}

	offers := m.list(at)
	candidates := make([]versions.Candidate, len(offers))
	for i := range offers {
		candidates[i] = offers[i].Candidate
		candidates[i].Retracted = "" // the constraint decides about retracted versions
	}

	all := versions.Request{
		Selection: corev1alpha1.VersionSelection{Prereleases: &corev1alpha1.Prereleases{}},
		Scope:     corev1alpha1.ScopeOf(at.namespace), Platform: m.input.Platform,
	}
	var fit []value
	for _, c := range versions.Select(candidates, all).Considered {
		o := &offers[c.Index]
		v, err := versions.Parse(o.Version)
		if c.Why == "" && err == nil {
			fit = append(fit, value{o.Version, v, o})
		}
	}

	slices.SortStableFunc(fit, func(a, b value) int {
		return cmp.Or(versions.Compare(b.parsed, a.parsed), cmp.Compare(a.version, b.version))
	})
	m.offered[at] = fit
	return fit
}

// providersOf returns the sorted names of offered packages that provide an API.
func (m *market) providersOf(namespace string, api corev1alpha1.ProvidedAPI) []string {
	key := provided{namespace, api}
	names, ok := m.providers[key]
	if !ok && m.input.Catalogue != nil {
		names = slices.Clone(m.input.Catalogue.Providers(namespace, api))
		slices.Sort(names)
		names = slices.Compact(names)
		m.providers[key] = names
	}
	return names
}

// constraint parses a constraint once; nil means invalid. A long text takes as much time as a
// thousand other steps, so each of its bytes is a step.
func (m *market) constraint(text string) *versions.Constraint {
	c, ok := m.constraints[text]
	if !ok {
		*m.spent += len(text)
		c, _ = versions.ParseConstraint(text)
		m.constraints[text] = c
	}
	return c
}

// accepts reports whether a selection includes an installed or offered version. An empty selection
// includes every installed version.
func (m *market) accepts(of corev1alpha1.VersionSelection, v *value) bool {
	if v.offer == nil && v.version == "" {
		return true // the version is not known yet
	}
	if v.offer == nil && strings.TrimSpace(of.Version) == "" && of.Prereleases == nil {
		return true
	}
	if of.Prereleases != nil || v.offer == nil || v.offer.Retracted != "" {
		return m.checks(of, v)
	}

	k := within{of.Version, v.version}
	fits, ok := m.within[k]
	if !ok {
		fits = m.checks(of, v)
		m.within[k] = fits
	}

	return fits
}

// within is a range and a version, independent of the package.
type within struct{ constraint, version string }

// checks is accepts without the cache. A retracted version has to be named exactly.
func (m *market) checks(of corev1alpha1.VersionSelection, v *value) bool {
	c := m.constraint(of.Version)
	if c == nil || v.parsed == nil || !c.Admits(v.parsed, of.Prereleases) {
		return false
	}
	return v.offer == nil || v.offer.Retracted == "" || c.Names(v.parsed)
}

// choice explains why a selection includes no offered version. It reads the offers once for each
// selection, because searches for the cause of a conflict explain the same requirement again.
func (m *market) choice(at place, of corev1alpha1.VersionSelection) versions.Choice {
	key := asked{place: at, version: of.Version}
	if of.Prereleases != nil {
		key.prereleases = fmt.Sprintf("%q", of.Prereleases.Identifiers)
	}
	if choice, ok := m.choices[key]; ok {
		return choice
	}

	offers := m.list(at)
	*m.spent += len(offers) + len(of.Version)
	candidates := make([]versions.Candidate, len(offers))
	for i := range offers {
		candidates[i] = offers[i].Candidate
	}

	choice := versions.Select(candidates, versions.Request{Selection: of, Platform: m.input.Platform})
	m.choices[key] = choice
	return choice
}

// rangeOf returns the range of versions that a dependency accepts.
func rangeOf(d *corev1alpha1.Dependency) corev1alpha1.VersionSelection {
	if d.Package == nil {
		return corev1alpha1.VersionSelection{}
	}
	return d.Package.VersionSelection
}
