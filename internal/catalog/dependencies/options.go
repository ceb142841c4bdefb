package dependencies

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// options returns the ways to satisfy a need, the preferred one first, or why there is none.
func (s *search) options(st *state, n need) ([]option, Outcome) {
	name, api := nameOf(&n.Dependency), n.Dependency.API
	refuse := func(reason, format string, args ...any) ([]option, Outcome) {
		return nil, Outcome{Dependency: n.Dependency, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if api != nil {
		s.awaited[KeyOf(api.APIVersion, api.Kind)] = true
	}
	if name == "" && api != nil {
		provided := corev1alpha1.ProvidedAPI{APIVersion: api.APIVersion, Kind: api.Kind}
		present := s.present(st, n, provided)
		served, missing := s.Served(api)
		switch {
		case len(missing) > 0:
			return refuse(corev1alpha1.ReasonFieldsMissing, "%s %s is served without %s. Install a later version of what provides it.",
				api.APIVersion, api.Kind, strings.Join(missing, ", "))
		case served:
			return []option{{outcome: s.served(n, present)}}, Outcome{}
		}
		providers := present
		if len(providers) == 0 {
			providers = s.Catalogue.Providers(provided)
		}
		switch len(providers) {
		case 0:
			return refuse(corev1alpha1.ReasonUnknownPackage, "The cluster does not serve %s %s, and no package that is installed or offered provides it.", api.APIVersion, api.Kind)
		case 1:
			name = providers[0]
		default:
			return refuse(corev1alpha1.ReasonAmbiguousProvider, "The packages %s provide %s %s. Name one in spec.dependencies.overrides, in package.name of %s.",
				strings.Join(providers, ", "), api.APIVersion, api.Kind, n.Dependency.Name)
		}
	}
	s.awaited[name] = true
	if i, version, ok := s.satisfier(st, n, name); ok {
		return s.existing(st, n, name, i, version)
	}
	return s.fresh(st, n, name)
}

// present returns the names of packages that are installed, or planned, and provide an API.
func (s *search) present(st *state, n need, api corev1alpha1.ProvidedAPI) []string {
	names := sets.New[string]()
	for i := range s.Installed {
		if in := &s.Installed[i]; in.Package != "" && s.visible(n.Dependent, in.Instance, in.Unique) && slices.Contains(in.Provides, api) {
			names.Insert(in.Package)
		}
	}
	for i := range st.planned {
		if slices.Contains(st.planned[i].offer.Provides, api) {
			names.Insert(st.planned[i].name)
		}
	}
	return sets.List(names)
}

// served returns the outcome of a requirement of an API that is served, with the package that is known to provide it.
func (s *search) served(n need, providers []string) Outcome {
	o := Outcome{Dependency: n.Dependency, Satisfied: true, Reason: corev1alpha1.ReasonAPIServed, Message: "The cluster serves it."}
	if len(providers) != 1 {
		return o
	}
	if found := s.candidates(n, providers[0]); len(found) > 0 {
		i := found[0]
		o.Satisfier, o.Version = &i.Instance, i.Version
		if i.Generated && !i.Available {
			o.Satisfied, o.Reason, o.Message = false, corev1alpha1.ReasonNotAvailable, "Waiting for "+i.String()+" to be available."
		}
	}
	return o
}

// visible reports whether a dependent may use an instance.
func (s *search) visible(dependent, i Instance, unique corev1alpha1.UniqueScope) bool {
	return i.Namespace == "" || i.Namespace == dependent.Namespace || unique == corev1alpha1.UniqueScopeCluster
}

// candidates returns the installed instances of a package that a need may be satisfied by, the preferred one first.
func (s *search) candidates(n need, name string) []*Installed {
	own := Child(n.Dependent, n.Dependency.Name)
	var recorded Instance
	if d := s.byName[n.Dependent]; d != nil {
		for _, r := range d.Requirements {
			if r.Name == n.Dependency.Name && r.Satisfier != nil {
				recorded = *r.Satisfier
			}
		}
	}
	var found []*Installed
	for i := range s.Installed {
		in := &s.Installed[i]
		switch {
		case in.Package != name || !s.visible(n.Dependent, in.Instance, in.Unique):
		case n.private && in.Instance != own, !n.private && in.Instance != own && in.Instance != recorded && s.privates[in.Instance]:
		default:
			found = append(found, in)
		}
	}
	rank := func(in *Installed) int {
		switch {
		case in.Instance == recorded:
			return 0
		case in.Namespace == n.Dependent.Namespace:
			return 1
		case in.Namespace == "":
			return 2
		}
		return 3
	}
	slices.SortFunc(found, func(a, b *Installed) int {
		if ra, rb := rank(a), rank(b); ra != rb {
			return ra - rb
		}
		return a.Instance.Compare(b.Instance)
	})
	return found
}

// satisfier returns the instance of a package that a need is satisfied by, and its version.
func (s *search) satisfier(st *state, n need, name string) (Instance, string, bool) {
	own := Child(n.Dependent, n.Dependency.Name)
	if found := s.candidates(n, name); len(found) > 0 {
		if p := st.find(found[0].Instance); p != nil {
			return p.Instance, p.version, true
		}
		return found[0].Instance, found[0].Version, true
	}
	for _, p := range st.planned {
		if p.name == name && s.visible(n.Dependent, p.Instance, p.offer.Unique) && (!n.private || p.Instance == own) && !s.privateIn(st, p.Instance) {
			return p.Instance, p.version, true
		}
	}
	for _, h := range n.path { // the root may not be known by its name yet
		if h.name == name && !n.private {
			return h.Instance, "", true
		}
	}
	return Instance{}, "", false
}

// privateIn reports whether a planned instance is one of several of its dependent.
func (s *search) privateIn(st *state, i Instance) bool {
	return slices.ContainsFunc(st.links, func(l link) bool { return l.private && l.outcome.Satisfier != nil && *l.outcome.Satisfier == i })
}

// existing returns the ways to satisfy a need by an instance that is installed or planned.
func (s *search) existing(st *state, n need, name string, i Instance, version string) ([]option, Outcome) {
	refuse := func(reason, format string, args ...any) ([]option, Outcome) {
		return nil, Outcome{Dependency: n.Dependency, Reason: reason, Message: fmt.Sprintf(format, args...), Version: version}
	}
	if cycle := s.cycle(n, name, i); cycle != "" {
		return refuse(corev1alpha1.ReasonDependencyCycle, "%s. Remove one of these dependencies, or make it optional.", cycle)
	}
	in, change := s.byName[i], st.find(i)
	outcome := Outcome{Dependency: n.Dependency, Satisfier: &i, Version: version}
	switch {
	case in != nil && in.Deleting:
		return refuse(corev1alpha1.ReasonNotAvailable, "%s is being deleted.", i)
	case version == "" && change == nil && rangeOf(&n.Dependency).Version != "":
		outcome.Reason, outcome.Message = corev1alpha1.ReasonNotAvailable, "Waiting for the version of "+i.String()+" to be known."
		return []option{{outcome: outcome}}, Outcome{}
	case version == "" || matches(rangeOf(&n.Dependency), version):
		return []option{{outcome: s.judged(outcome, n, in, change != nil)}}, Outcome{}
	case change != nil || !in.Changeable || s.UserManaged:
		return refuse(corev1alpha1.ReasonVersionMismatch, "%s", s.mismatch(st, n, i, name, version))
	}
	var options []option
	for _, offer := range slices.Backward(s.fits(name, rangeOf(&n.Dependency), version)) {
		if higher(offer.Version, version) && s.accepted(st, i, offer.Version) && inScope(&offer, i) {
			outcome.Version, outcome.Reason = offer.Version, corev1alpha1.ReasonNotAvailable
			outcome.Message = fmt.Sprintf("%s is changed from %s to %s.", i, version, offer.Version)
			options = append(options, option{&planned{i, false, name, offer.Version, &offer}, outcome})
		}
	}
	if len(options) == 0 {
		return refuse(corev1alpha1.ReasonVersionMismatch, "%s", s.mismatch(st, n, i, name, version))
	}
	return options, Outcome{}
}

// judged completes the outcome of a need that an instance satisfies by its version.
func (s *search) judged(o Outcome, n need, in *Installed, changed bool) Outcome {
	o.Satisfied = in != nil && in.Available && !changed
	o.Reason, o.Message = corev1alpha1.ReasonAlreadyInstalled, "It is installed as "+o.Satisfier.String()+"."
	switch {
	case !o.Satisfied:
		o.Reason, o.Message = corev1alpha1.ReasonNotAvailable, "Waiting for "+o.Satisfier.String()+" to be available."
	case in.Generated && in.Instance == Child(n.Dependent, n.Dependency.Name):
		o.Reason = corev1alpha1.ReasonInstalledByThisPackage
	}
	return o
}

// accepted reports whether all other dependents of an instance accept a version.
func (s *search) accepted(st *state, i Instance, version string) bool {
	for _, need := range s.dependents(st, i) {
		if !matches(rangeOf(&need.Dependency), version) {
			return false
		}
	}
	return true
}

// dependents returns the requirements that an instance satisfies, but for those of the root that were recorded.
func (s *search) dependents(st *state, i Instance) []Need {
	var found []Need
	for k := range s.Installed {
		in := &s.Installed[k]
		if in.Instance == s.Root || st.find(in.Instance) != nil {
			continue
		}
		for _, r := range in.Requirements {
			if r.Satisfier != nil && *r.Satisfier == i {
				found = append(found, Need{in.Instance, r.Dependency})
			}
		}
	}
	for _, l := range st.links {
		if l.outcome.Satisfier != nil && *l.outcome.Satisfier == i {
			found = append(found, l.Need)
		}
	}
	return found
}

// fresh returns the versions in which a package can be installed for a need, the highest first.
func (s *search) fresh(st *state, n need, name string) ([]option, Outcome) {
	refuse := func(reason, format string, args ...any) ([]option, Outcome) {
		return nil, Outcome{Dependency: n.Dependency, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	i := Child(n.Dependent, n.Dependency.Name)
	if s.UserManaged {
		return refuse(corev1alpha1.ReasonManagedByUser, "It is not installed, and spec.dependencies.management is User. Install %s%s.", name, inRange(n.Dependency))
	}
	if in := s.byName[i]; in != nil || st.find(i) != nil {
		return refuse(corev1alpha1.ReasonVersionMismatch, "%s exists and is of another package. Give it another name, or name what is to be used in spec.dependencies.overrides.", i)
	}
	offers := s.fits(name, rangeOf(&n.Dependency), "")
	if len(offers) == 0 {
		choice := s.choice(name, rangeOf(&n.Dependency), "")
		return refuse(choice.Reason, "%s: %s", name, choice.Message)
	}
	var options []option
	for _, offer := range offers {
		if inScope(&offer, i) {
			options = append(options, option{
				&planned{i, true, name, offer.Version, &offer},
				Outcome{Dependency: n.Dependency, Satisfier: &i, Version: offer.Version, Reason: corev1alpha1.ReasonNotAvailable, Message: "Waiting for " + i.String() + " to be available."},
			})
		}
	}
	if len(options) == 0 && i.Namespace != "" {
		return refuse(corev1alpha1.ReasonNoMatchingVersion, "%s can only be installed for the whole cluster, as an administrator does with: kubectl package install %s --cluster --package %s",
			name, n.Dependency.Name, name)
	}
	if len(options) == 0 {
		return refuse(corev1alpha1.ReasonNoMatchingVersion, "%s can only be installed in a namespace, and a ClusterPackage needs it.", name)
	}
	return options, Outcome{}
}

func inRange(d corev1alpha1.Dependency) string {
	if r := rangeOf(&d).Version; r != "" {
		return fmt.Sprintf(" %q", r)
	}
	return ""
}

func inScope(o *Offer, i Instance) bool {
	return len(o.Scopes) == 0 || slices.Contains(o.Scopes, corev1alpha1.ScopeOf(i.Namespace))
}

// fitting are the versions of a package that fit a constraint, the highest first.
type fitting struct {
	offers []Offer
	choice versions.Choice
}

func (s *search) fits(name string, selection corev1alpha1.VersionSelection, installed string) []Offer {
	return s.selected(name, selection, installed).offers
}

func (s *search) choice(name string, selection corev1alpha1.VersionSelection, installed string) versions.Choice {
	return s.selected(name, selection, installed).choice
}

func (s *search) selected(name string, selection corev1alpha1.VersionSelection, installed string) fitting {
	key := fmt.Sprintf("%q %q %v %q", name, selection.Version, selection.Prereleases, installed)
	if f, ok := s.fitting[key]; ok {
		return f
	}
	offers := s.Catalogue.Offers(name)
	candidates := make([]versions.Candidate, len(offers))
	for i := range offers {
		candidates[i] = offers[i].Candidate
	}
	f := fitting{choice: versions.Select(candidates, versions.Request{Selection: selection, Installed: installed, AllowDowngrade: true, Platform: s.Platform})}
	for _, c := range f.choice.Considered {
		if c.Why == "" {
			f.offers = append(f.offers, offers[c.Index])
		}
	}
	slices.SortFunc(f.offers, func(a, b Offer) int {
		switch {
		case higher(a.Version, b.Version):
			return -1
		case higher(b.Version, a.Version):
			return 1
		}
		return strings.Compare(b.Version, a.Version)
	})
	s.fitting[key] = f
	return f
}

// higher reports whether a is a higher version than b.
func higher(a, b string) bool {
	va, errA := versions.Parse(a)
	vb, errB := versions.Parse(b)
	return errA == nil && errB == nil && va.GreaterThan(vb)
}
