package resolver_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/testing/conformance"
)

type declared struct {
	Name, RefName, Constraints string
	GVK                        *corev1alpha1.ProvidedAPI
	Optional                   bool
}

func (d declared) dependency() corev1alpha1.Dependency {
	out := corev1alpha1.Dependency{Name: d.Name, Optional: d.Optional}
	if d.GVK != nil {
		out.API = &corev1alpha1.DependencyAPI{APIVersion: d.GVK.APIVersion, Kind: d.GVK.Kind}
	} else {
		out.Package = &corev1alpha1.DependencyPackage{Name: d.RefName, VersionSelection: corev1alpha1.VersionSelection{Version: d.Constraints}}
	}
	return out
}

type situation struct {
	Dependency       declared
	Dependencies     []declared
	ExistingInstalls []struct{ Name, Namespace, RefName, Version string }
	Packages         []string
	Catalogue        []struct {
		RefName, Version string
		Provides         []corev1alpha1.ProvidedAPI
	}
	ServedAPIs       []corev1alpha1.ProvidedAPI `json:"servedApis"`
	ManagedBy        string
	ProviderSearch   *bool
	InstallationType string
}

func (s situation) solve(changeable bool) resolver.Plan {
	root := shop()
	root.UserManaged = s.ManagedBy == string(corev1alpha1.DependencyManagementUser)
	offers := resolver.Offers{}
	for _, d := range append(slices.Clone(s.Dependencies), s.Dependency) {
		if d.Name == "" {
			continue
		}
		root.Dependencies = append(root.Dependencies, d.dependency())
		for _, v := range s.Packages {
			if o := offer(v); d.RefName != "" && !slices.ContainsFunc(offers[d.RefName], func(p resolver.Offer) bool { return p.Version == v }) {
				offers[d.RefName] = append(offers[d.RefName], o)
			}
		}
	}
	for _, c := range s.Catalogue {
		offers[c.RefName] = append(offers[c.RefName], resolver.Offer{Candidate: versions.Candidate{Version: c.Version}, Provides: c.Provides})
	}
	in := resolver.Input{Roots: []resolver.Root{root}, Catalogue: offers, Served: func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		return slices.Contains(s.ServedAPIs, corev1alpha1.ProvidedAPI{APIVersion: api.APIVersion, Kind: api.Kind}), nil
	}}
	for _, i := range s.ExistingInstalls {
		at := instance(i.Name)
		if i.Namespace != "" {
			at.Namespace = root.Namespace
		}
		in.Installed = append(in.Installed, resolver.Installed{Instance: at, Package: i.RefName, Version: i.Version, Available: true, Changeable: changeable})
	}
	return resolver.Solve(in)
}

// conditionsOf are the names of the proposal for what became of a requirement.
func conditionsOf(plan resolver.Plan, o resolver.Outcome) []string {
	creates := slices.ContainsFunc(plan.Steps, func(s resolver.Step) bool { return s.Create && o.Satisfier != nil && s.Instance == *o.Satisfier })
	switch {
	case creates:
		return []string{"OwnedPackageInstall"}
	case o.Reason == corev1alpha1.ReasonAPIServed:
		return []string{"ExistingGVK"}
	case o.Reason == corev1alpha1.ReasonVersionMismatch:
		return []string{"FoundPackageInstall", "FoundPackageInstallRequiresDifferentVersion"}
	case o.Satisfier != nil:
		return []string{"FoundPackageInstall"}
	case o.Reason == corev1alpha1.ReasonNoMatchingVersion:
		return []string{"UnknownPackageVersion"}
	case o.Reason == corev1alpha1.ReasonUnknownPackage:
		return []string{"UnknownPackage"}
	}
	return []string{o.Reason}
}

func decided(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[situation, struct {
		Create, ParentFails *bool
		Conditions          []string
		RefName, Version    *string
	}](t, r)
	if in.ProviderSearch != nil && !*in.ProviderSearch && in.Dependency.GVK != nil {
		return "", "what provides an API is always looked for"
	}
	plan := in.solve(r.States("update") || r.States("updated") || r.States("updateTo"))
	o := plan.Results[0].Outcomes[0]
	creates := slices.ContainsFunc(plan.Steps, func(s resolver.Step) bool { return s.Create })
	var d differences
	d.Unless(want.Create == nil || *want.Create == creates, "create %v", creates)
	d.Unless(want.ParentFails == nil || *want.ParentFails == (o.Failed && !o.Dependency.Optional), "%+v", o)
	if want.Conditions != nil && o.Reason != corev1alpha1.ReasonManagedByUser {
		got := conditionsOf(plan, o)
		d.Unless(slices.ContainsFunc(got, func(c string) bool { return slices.Contains(want.Conditions, c) }), "conditions %v", got)
	}
	for _, s := range plan.Steps {
		d.Unless(want.RefName == nil || *want.RefName == s.Package, "package %s", s.Package)
		d.Unless(want.Version == nil || *want.Version == s.Version, "version %s", s.Version)
	}
	return d.String(), ""
}

func decidedList(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[situation, struct {
		CreatedCount *int
		Versions     []string
	}](t, r)
	plan := in.solve(false)
	got := []string{}
	for _, s := range plan.Steps {
		got = append(got, s.Version)
	}
	slices.Sort(got)
	slices.Sort(want.Versions)
	var d differences
	d.Unless(want.CreatedCount == nil || *want.CreatedCount == len(got), "%s", printed(plan))
	d.Unless(want.Versions == nil || slices.Equal(got, want.Versions), "versions %v", got)
	return d.String(), ""
}

// play is a cluster that does at once what is planned.
type play struct {
	roots     map[string]resolver.Root
	installed map[resolver.Instance]resolver.Installed
	offers    resolver.Offers
}

// wordy translates what rows say of ranges in words.
func wordy(constraint string) string {
	if rest, ok := strings.CutPrefix(constraint, "other than "); ok {
		return "!=" + rest
	}
	if rest, ok := strings.CutPrefix(constraint, "accepts "); ok {
		low, high, _ := strings.Cut(rest, " and not ")
		return ">=" + low + ", <" + high
	}
	return constraint
}

func (p *play) resolve() resolver.Plan {
	in := resolver.Input{Catalogue: p.offers}
	for _, name := range slices.Sorted(maps.Keys(p.roots)) {
		in.Roots = append(in.Roots, p.roots[name])
	}
	for _, i := range p.installed {
		in.Installed = append(in.Installed, i)
	}
	plan := resolver.Solve(in)
	byDependent := map[resolver.Instance][]resolver.Requirement{}
	for _, s := range plan.Steps {
		p.installed[s.Instance] = resolver.Installed{Instance: s.Instance, Package: s.Package, Version: s.Version, Generated: true, Changeable: true, Available: true}
	}
	for _, s := range plan.Steps {
		for _, n := range s.Needs {
			at := s.Instance
			byDependent[n.Dependent] = append(byDependent[n.Dependent], resolver.Requirement{Dependency: n.Dependency, Satisfier: &at})
		}
	}
	for at, requirements := range byDependent {
		i := p.installed[at]
		for _, r := range requirements {
			i.Requirements = slices.DeleteFunc(slices.Clone(i.Requirements), func(was resolver.Requirement) bool { return was.Name == r.Name })
			i.Requirements = append(i.Requirements, r)
		}
		p.installed[at] = i
	}
	return plan
}

// played: packages are installed and updated, one step after the other.
func played(t *testing.T, r row) (string, notApplicable) {
	in, want := conformance.Decode[struct {
		Catalogue map[string]map[string][]needed
		Steps     []map[string]any
	}, struct {
		AfterEachStep []map[string]any
		AllHealthy    *bool
		Healthy       map[string]bool
	}](t, r)
	p := &play{roots: map[string]resolver.Root{}, installed: map[resolver.Instance]resolver.Installed{}, offers: resolver.Offers{}}
	offered := func(name, version string) {
		if isOffered := slices.ContainsFunc(p.offers[name], func(o resolver.Offer) bool { return o.Version == version }); !isOffered && name != "resolved" {
			if _, err := versions.Parse(version); err == nil {
				p.offers[name] = append(p.offers[name], offer(version))
			}
		}
	}
	for name, all := range in.Catalogue {
		for version, needs := range all {
			o := offer(version)
			for _, n := range needs {
				if isDigest(n.Constraint) {
					return "", noDigests
				}
				o.Dependencies = append(o.Dependencies, on(n.Package, wordy(n.Constraint)))
			}
			p.offers[name] = append(p.offers[name], o)
		}
	}
	for _, after := range want.AfterEachStep {
		for name, version := range after {
			if text, ok := version.(string); ok && text != "True" && text != "False" {
				offered(name, text)
			}
		}
	}
	if slices.Contains(slices.Collect(maps.Values(want.Healthy)), false) {
		return "", noParts
	}
	var d differences
	for k, step := range in.Steps {
		for _, what := range step {
			var names []any
			switch what := what.(type) {
			case string:
				names = []any{what}
			case []any:
				names = what
			}
			for _, n := range names {
				text, _ := n.(string)
				name, version, _ := strings.Cut(text, "@")
				offered(name, version)
				at := slices.IndexFunc(p.offers[name], func(o resolver.Offer) bool { return o.Version == version })
				if at < 0 {
					return "", "what a step does is not described by versions"
				}
				p.roots[name] = resolver.Root{Instance: instance(name), Package: name, Version: version, Dependencies: p.offers[name][at].Dependencies}
				i := p.installed[instance(name)]
				i.Instance, i.Package, i.Version, i.Available = instance(name), name, version, true
				p.installed[i.Instance] = i
			}
		}
		plan := p.resolve()
		resolved := "True"
		for _, result := range plan.Results {
			if slices.ContainsFunc(result.Outcomes, func(o resolver.Outcome) bool { return o.Failed }) {
				resolved = "False"
			}
		}
		if k >= len(want.AfterEachStep) {
			continue
		}
		for name, version := range want.AfterEachStep[k] {
			if name == "resolved" {
				d.Unless(version == resolved, "step %d: resolved %s: %s", k, resolved, printed(plan))
				continue
			}
			found := ""
			for _, i := range p.installed {
				if i.Package == name {
					found = i.Version
				}
			}
			d.Unless(version == found, "step %d: %s %q: %s", k, name, found, printed(plan))
		}
	}
	return d.String(), ""
}
