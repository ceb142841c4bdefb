package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// expand returns the requirements of a slot's value by name, and enforces them while the slot has
// this value.
func (s *search) expand(i, v int32) []int32 {
	if done := s.slots[i].expanded[v]; done != nil {
		return done
	}

	edges := []int32{}
	of := &s.slots[i]
	*s.steps++

	recorded := of.installed
	if recorded != nil && of.root.staysAt(v) {
		recorded = s.world.was[recorded.Instance] // nil if no satisfier was recorded
	}

	switch {
	case recorded == nil && of.root != nil:
	case recorded != nil && (v == 0 && of.root == nil && !recorded.Unloaded || of.root.staysAt(v)):
		names := func(k int) string { return recorded.Requirements[k].Name }
		for _, k := range byName(len(recorded.Requirements), names) {
			if r := &recorded.Requirements[k]; r.Satisfier != nil {
				if e, ok := s.kept(i, r); ok {
					edges = append(edges, e)
					if s.edges[e].value = v; of.root != nil {
						s.enforce(e)
					}
				}
			}
		}
	default:
		deps := s.dependenciesOf(i, v)
		for _, k := range byName(len(deps), func(k int) string { return deps[k].Name }) {
			edges = append(edges, s.require(i, v, deps, k))
		}
		for _, e := range edges {
			s.enforce(e)
		}
	}

	s.slots[i].expanded[v] = edges
	return edges
}

// byName returns the numbers below n, sorted by their names.
func byName(n int, name func(k int) string) []int {
	all := make([]int, n)
	for k := range all {
		all[k] = k
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(name(a), name(b)) })
	return all
}

// dependenciesOf returns the dependencies of a value that is not installed and loaded.
func (s *search) dependenciesOf(i, v int32) []corev1alpha1.Dependency {
	of := &s.slots[i]
	switch {
	case of.root != nil && of.root.UserManaged:
		return nil
	case of.root != nil && len(of.root.Versions) > 0:
		return of.root.Versions[v].Dependencies
	case of.root != nil:
		return of.root.Dependencies
	case of.values[v].offer != nil:
		return of.values[v].offer.Dependencies
	}

	for _, o := range s.versions(place{of.namespace, of.name}) {
		if o.version == of.values[v].version {
			return o.offer.Dependencies
		}
	}

	return nil
}

// require returns the edge of one dependency of a value.
func (s *search) require(i, v int32, deps []corev1alpha1.Dependency, k int) int32 {
	d := &deps[k]
	e := edge{slot: i, value: v, dependency: d, selector: -1}
	if d.Optional {
		e.selector = s.addVariable(-1)
	}

	e.name = s.packageOf(&e, deps)
	if e.name != "" {
		s.awaited[e.name] = true
		s.aim(&e, isPrivate(deps, k))
	}
	return s.newEdge(e)
}

// packageOf returns the package that a dependency requires; empty if the cluster serves the API or
// if there is no such package.
func (s *search) packageOf(e *edge, deps []corev1alpha1.Dependency) string {
	d := e.dependency
	if d.API != nil {
		s.awaited[KeyOf(d.API.APIVersion, d.API.Kind)] = true
		served, missing := false, []string(nil)
		if s.input.Served != nil {
			served, missing = s.input.Served(d.API)
		}
		switch {
		// The provider is installed already, in a version without the fields.
		case served && len(missing) > 0:
			e.reason = corev1alpha1.ReasonFieldsMissing
			e.problem = fmt.Sprintf("%s %s is served without %s. Install a later version of its provider.",
				d.API.APIVersion, d.API.Kind, strings.Join(missing, ", "))
			return ""
		case served:
			e.served = true
			return ""
		}
	}

	switch {
	case d.Package != nil && d.Package.Name != "":
		return d.Package.Name
	case d.API != nil:
		return s.providerOf(e, deps)
	}

	e.reason, e.problem = corev1alpha1.ReasonUnknownPackage, "It names neither a package nor an API."
	return ""
}

// providerOf returns the package that provides an API. It considers the installed packages, or else
// the offered ones. If there are several, the dependent must require exactly one of them anyway.
func (s *search) providerOf(e *edge, deps []corev1alpha1.Dependency) string {
	d, namespace := e.dependency, s.slots[e.slot].namespace
	api := corev1alpha1.ProvidedAPI{APIVersion: d.API.APIVersion, Kind: d.API.Kind}
	var names []string
	for _, i := range s.world.byAPI[api] {
		*s.steps++
		if visible(namespace, i) && !i.Deleting && !i.Tentative {
			names = append(names, i.Package)
		}
	}

	if len(names) == 0 {
		names = slices.Clone(s.providersOf(namespace, api))
	}

	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 1 {
		var wanted []string
		for i := range deps {
			if p := deps[i].Package; p != nil && slices.Contains(names, p.Name) && !slices.Contains(wanted, p.Name) {
				wanted = append(wanted, p.Name)
			}
		}
		if len(wanted) == 1 {
			names = wanted
		}
	}

	switch len(names) {
	case 0:
		e.reason = corev1alpha1.ReasonUnknownPackage
		e.problem = fmt.Sprintf("The cluster does not serve %s %s, and no installed or offered package provides it. Install a provider, or add a repository that offers one.",
			api.APIVersion, api.Kind)
	case 1:
		return names[0]
	default:
		e.reason = corev1alpha1.ReasonAmbiguousProvider
		e.problem = fmt.Sprintf("The packages %s provide %s %s. Name one in spec.dependencies.overrides, in package.name of %s, or install it.",
			few(names), api.APIVersion, api.Kind, d.Name)
	}

	return ""
}

// aim finds the slots that can satisfy a requirement.
func (s *search) aim(e *edge, private bool) {
	of := &s.slots[e.slot]
	var usable []*Installed
	var deleted *Installed
	if private && s.isNested(e) {
		e.reason = corev1alpha1.ReasonDependencyCycle
		e.problem = fmt.Sprintf("%s would be installed for itself, in an endless loop. Remove one of these dependencies.", e.name)
		return
	}

	if private {
		if i := s.world.at[s.childOf(e)]; of.installed != nil && i != nil && i.Package == e.name && !i.Tentative {
			if usable = []*Installed{i}; i.Deleting {
				usable, deleted = nil, i
			}
		}
	} else {
		usable, deleted = s.world.candidates(of.namespace, e.name, s.recordedFor(e))
	}

	var to []int32
	for _, i := range usable {
		to = append(to, s.existing(i))
	}

	switch {
	case len(to) > 0:
	case deleted != nil:
		e.reason, e.problem = corev1alpha1.ReasonNotAvailable, deleted.String()+" is being deleted. It is installed again after that."
		return
	case private:
		to = []int32{s.created(key{namespace: of.namespace, name: e.name, dependent: e.slot + 1, handle: e.dependency.Name})}
	default:
		to = []int32{s.created(key{namespace: of.namespace, name: e.name})}
	}

	fits := false
	for _, i := range to {
		t := s.target(i, e.dependency)
		e.targets = append(e.targets, t)
		fits = fits || slices.Contains(t.fits, true)
	}

	if !fits {
		s.explainNoFit(e, usable)
	}
}

// isNested reports whether a requirement with its own instance is below another requirement of the
// same package.
func (s *search) isNested(e *edge) bool {
	for i := e.slot; ; {
		of := &s.slots[i]
		if of.name == e.name {
			return true
		}
		if of.key.dependent == 0 {
			return false
		}
		i = of.key.dependent - 1
	}
}

// childOf returns the instance that would be created for a requirement of an existing package.
func (s *search) childOf(e *edge) Instance {
	return Child(s.slots[e.slot].instance, e.dependency.Name)
}

// recordedFor returns the instance that satisfied a requirement before.
func (s *search) recordedFor(e *edge) *Instance {
	of := &s.slots[e.slot]
	if of.installed == nil {
		return nil
	}

	// A root takes the place of its installed version, whose requirements are in world.was.
	was := of.installed.Requirements
	if of.root != nil {
		was = nil
		if before := s.world.was[of.root.Instance]; before != nil {
			was = before.Requirements
		}
	}

	for i := range was {
		if was[i].Name == e.dependency.Name {
			return was[i].Satisfier
		}
	}

	return nil
}

// enforce adds the clauses of an edge.
func (s *search) enforce(id int32) {
	e := &s.edges[id]
	if e.disabled || e.served {
		return
	}

	unless := []literal{no(s.slots[e.slot].first + e.value)}
	if e.selector >= 0 {
		unless = append(unless, no(e.selector))
	}

	var fitting []literal
	for _, t := range e.targets {
		fitting = append(fitting, s.anyOf(t.slot, t.fits)...)
	}

	// With a single target, each version that does not fit also gets its own clause, which excludes it
	// as soon as the dependent is chosen.
	if len(e.targets) == 1 && len(fitting) > 0 && len(fitting) < len(e.targets[0].fits) {
		t := e.targets[0]
		for v, fit := range t.fits {
			if !fit {
				s.add(id, s.joined(unless, no(s.slots[t.slot].first+int32(v)))...)
			}
		}
	}

	s.add(id, append(unless, fitting...)...)
}

// explainNoFit explains why no version satisfies a requirement, regardless of other requirements.
func (s *search) explainNoFit(e *edge, usable []*Installed) {
	of, want := &s.slots[e.slot], rangeOf(e.dependency)
	at := place{of.namespace, e.name}
	choice := s.choice(at, want)
	switch {
	case choice.Reason == corev1alpha1.ReasonVersionInvalid:
		e.reason, e.problem = corev1alpha1.ReasonNoMatchingVersion, fmt.Sprintf("The range of %s is invalid: %s", e.name, choice.Message)
	case len(usable) > 0:
		e.reason, e.problem = corev1alpha1.ReasonVersionMismatch, s.explainMismatch(e, usable)
	case choice.Reason == corev1alpha1.ReasonUnknownPackage:
		space := "the namespace " + of.namespace
		if of.namespace == "" {
			space = "a ClusterPackage"
		}
		e.reason = corev1alpha1.ReasonUnknownPackage
		e.problem = fmt.Sprintf("%s is not installed, and no repository that %s sees offers it. Add one that does.", e.name, space)
	case choice.Index < 0:
		e.reason = corev1alpha1.ReasonNoMatchingVersion
		e.problem = e.name + ": " + choice.Message + "."
	case len(s.versions(at)) == 0 && of.namespace != "":
		e.reason = corev1alpha1.ReasonUnknownPackage
		e.problem = fmt.Sprintf("%s can be installed only for the whole cluster. An administrator can do this: kubectl package install %s --cluster", e.name, e.name)
	case len(s.versions(at)) == 0:
		e.reason = corev1alpha1.ReasonUnknownPackage
		e.problem = fmt.Sprintf("%s can be installed only in a namespace, but a ClusterPackage depends on it, which no Package satisfies. Ask its author to allow the scope Cluster.", e.name)
	default:
		var others []string
		for _, i := range s.world.byPackage[e.name] {
			others = append(others, i.String())
		}
		e.reason = corev1alpha1.ReasonVersionMismatch
		e.problem = fmt.Sprintf("%s can be installed only once in its scope, and there is another one: %s.", e.name, few(others))
	}
}

// explainMismatch explains why the installed package does not fit, and what the user can change:
// the range, or the version by hand.
func (s *search) explainMismatch(e *edge, usable []*Installed) string {
	i, want := usable[0], rangeOf(e.dependency)
	text := fmt.Sprintf("%s is installed as %s in %s, which is not within %q", e.name, i, i.Version, want.Version)
	switch above := s.choice(place{i.Namespace, e.name}, want); {
	case !s.heeds(i):
		return text + ", and " + clusterOnly
	case above.Index < 0:
		return text + ". No offered version is: " + above.Message + "."
	case i.Changeable:
		return text + ". No higher version is, and it is never downgraded automatically. Change the range, or " + lowerByHand(i, s.listed[place{i.Namespace, e.name}][above.Index].Version) + "."
	}
	return text + ". Change its version, or set spec.upgradePolicy.allowDependents in it if it has a packageRef."
}

// lowerByHand returns the command that downgrades an installed package.
func lowerByHand(i *Installed, version string) string {
	kind, flags := "package", i.Name+" -n "+i.Namespace
	if i.Namespace == "" {
		kind, flags = "clusterpackage", "clusterpackage/"+i.Name
	}

	text := fmt.Sprintf("downgrade it by hand: kubectl package upgrade %s --version %s --allow-downgrade", flags, version)
	if !i.Generated {
		return text
	}

	own := "kubectl annotate " + kind + " " + i.Name
	if i.Namespace != "" {
		own += " -n " + i.Namespace
	}

	return fmt.Sprintf("make it your own (%s package-operator.run/adopt=true) and %s", own, text)
}

// clusterOnly explains why the version of a ClusterPackage is not changed for Packages.
const clusterOnly = "Packages in namespaces cannot change it. Change the range, or ask an administrator to change its version, or to set spec.upgradePolicy.dependents to All in it."

// heeds reports whether an instance heeds all roots.
func (s *search) heeds(i *Installed) bool {
	return !slices.ContainsFunc(s.world.roots, func(r *Root) bool { return !i.Heeds(r.Instance) })
}
