package resolver

import (
	"cmp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// value is a version that a slot may have.
type value struct {
	version string
	parsed  *semver.Version // nil for text that is not a version
	offer   *Offer          // nil for an installed version
}

// place is a package as a namespace sees it.
type place struct{ namespace, name string }

// market reads the catalogue once. What it reads is counted as steps of the resolution.
type market struct {
	input       *Input
	spent       *int              // steps
	listed      map[place][]Offer // as the catalogue has them
	offered     map[place][]value
	leads       map[place][]want // what some version of a package needs
	providers   map[provided][]string
	constraints map[string]*versions.Constraint // nil for text that is none
	awaited     map[string]bool                 // packages and APIs that were looked up
	within      map[within]bool
}

// want is what a dependency is on, whatever its range: a package, or else an API.
type want struct {
	name string
	api  corev1alpha1.ProvidedAPI
}

func wantOf(d *corev1alpha1.Dependency) want {
	switch {
	case d.Package != nil && d.Package.Name != "":
		return want{name: d.Package.Name}
	case d.API != nil:
		return want{api: corev1alpha1.ProvidedAPI{APIVersion: d.API.APIVersion, Kind: d.API.Kind}}
	}
	return want{}
}

type provided struct {
	namespace string
	api       corev1alpha1.ProvidedAPI
}

func newMarket(in *Input) *market {
	return &market{
		input: in, spent: new(int), listed: map[place][]Offer{}, offered: map[place][]value{}, leads: map[place][]want{}, providers: map[provided][]string{},
		constraints: map[string]*versions.Constraint{}, awaited: map[string]bool{}, within: map[within]bool{},
	}
}

// list reads what the catalogue offers.
func (m *market) list(at place) []Offer {
	all, ok := m.listed[at]
	if !ok && m.input.Catalogue != nil {
		all = m.input.Catalogue.Offers(at.namespace, at.name)
		m.listed[at] = all
		*m.spent += len(all)
	}
	return all
}

// wants returns what the versions of a package need that can be installed in a namespace, each once.
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

// versions returns the versions that can be installed in a namespace, the highest first. Retracted ones are among them.
func (m *market) versions(at place) []value {
	if all, ok := m.offered[at]; ok {
		return all
	}
	offers := m.list(at)
	candidates := make([]versions.Candidate, len(offers))
	for i := range offers {
		candidates[i] = offers[i].Candidate
		candidates[i].Retracted = "" // up to the constraint
	}
	all := versions.Request{Selection: corev1alpha1.VersionSelection{Prereleases: &corev1alpha1.Prereleases{}}, Platform: m.input.Platform}
	var fit []value
	for _, c := range versions.Select(candidates, all).Considered {
		o := &offers[c.Index]
		v, err := versions.Parse(o.Version)
		if c.Why != "" || err != nil {
			continue
		}
		if len(o.Scopes) == 0 || slices.Contains(o.Scopes, corev1alpha1.ScopeOf(at.namespace)) {
			fit = append(fit, value{o.Version, v, o})
		}
	}
	slices.SortStableFunc(fit, func(a, b value) int {
		return cmp.Or(versions.Compare(b.parsed, a.parsed), cmp.Compare(a.version, b.version))
	})
	m.offered[at] = fit
	return fit
}

// providersOf returns the names of packages that are offered and provide an API, sorted.
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

func (m *market) constraint(text string) *versions.Constraint {
	c, ok := m.constraints[text]
	if !ok {
		c, _ = versions.ParseConstraint(text)
		m.constraints[text] = c
	}
	return c
}

// accepts reports whether a selection takes a version that is installed or offered. An
// installed version is within an empty selection whatever it is.
func (m *market) accepts(of corev1alpha1.VersionSelection, v *value) bool {
	if v.offer == nil && v.version == "" {
		return true // not known yet
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

// within is a range and a version, of any package.
type within struct{ constraint, version string }

func (m *market) checks(of corev1alpha1.VersionSelection, v *value) bool {
	c := m.constraint(of.Version)
	if c == nil || v.parsed == nil || !c.Admits(v.parsed, of.Prereleases) {
		return false
	}
	return v.offer == nil || v.offer.Retracted == "" || c.Names(v.parsed)
}

// choice explains why a selection takes none of the versions that are offered.
func (m *market) choice(at place, of corev1alpha1.VersionSelection) versions.Choice {
	offers := m.list(at)
	*m.spent += len(offers)
	candidates := make([]versions.Candidate, len(offers))
	for i := range offers {
		candidates[i] = offers[i].Candidate
	}
	return versions.Select(candidates, versions.Request{Selection: of, Platform: m.input.Platform})
}

// rangeOf returns the versions that a dependency takes.
func rangeOf(d *corev1alpha1.Dependency) corev1alpha1.VersionSelection {
	if d.Package == nil {
		return corev1alpha1.VersionSelection{}
	}
	return d.Package.VersionSelection
}
