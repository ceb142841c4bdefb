package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const (
	resolutionMessages = 8  // requirements that the explanation of a conflict names
	resolutionPath     = 16 // packages of a path that a message names
	resolutionNearest  = 5  // refused versions of one package in an explanation
)

// explain describes why requirements exclude a solution.
func (s *search) explain(core []int32) (reason, message string) {
	core = s.sorted(core)
	for _, id := range core {
		if c := s.edges[id].cycle; c != nil {
			return corev1alpha1.ReasonDependencyCycle,
				s.cyclePath(c) + ": each would wait for the next. Remove one of these dependencies, or make it optional."
		}
	}

	var problems []string
	for _, id := range core {
		e := &s.edges[id]
		if e.problem == "" {
			continue
		}

		reason = cmp.Or(reason, e.reason)
		text := e.problem
		if s.slots[e.slot].root == nil {
			text = fmt.Sprintf("%s depends on %s (path %s): %s", s.dependent(id), subject(e), arrows(append(s.path(e.slot), subject(e))), text)
		}
		problems = append(problems, text)
	}

	if groups := s.conflicts(core); len(problems) == 0 || len(groups) > 1 {
		problems = append(problems, groups...)
	}
	if reason = cmp.Or(reason, corev1alpha1.ReasonVersionMismatch); len(problems) == 0 {
		return reason, "No versions fit together."
	}

	rest := ""
	if n := len(problems) - resolutionMessages; n > 0 {
		problems = problems[:resolutionMessages]
		rest = fmt.Sprintf(" And %d others.", n)
	}

	return reason, strings.Join(problems, " ") + rest
}

// sorted orders requirements by dependent and name.
func (s *search) sorted(core []int32) []int32 {
	core = slices.Clone(core)
	slices.SortStableFunc(core, func(a, b int32) int {
		x, y := &s.edges[a], &s.edges[b]
		if c := cmp.Compare(s.slots[x.slot].key.String(), s.slots[y.slot].key.String()); c != 0 || x.dependency == nil || y.dependency == nil {
			return c
		}
		return cmp.Or(cmp.Compare(x.value, y.value), cmp.Compare(x.dependency.Name, y.dependency.Name))
	})
	return core
}

// cyclePath names the packages of a cycle. It always starts at the same one, so that the message
// does not change between resolutions.
func (s *search) cyclePath(cycle []int32) string {
	names := make([]string, 0, len(cycle)+1)
	for _, id := range cycle {
		names = append(names, s.title(s.edges[id].slot))
	}

	at := 0 // start with a root, or else with the lowest name
	for i := range names {
		if r, t := s.slots[s.edges[cycle[i]].slot].root != nil, s.slots[s.edges[cycle[at]].slot].root != nil; r && !t || r == t && names[i] < names[at] {
			at = i
		}
	}

	names = append(slices.Clone(names[at:]), names[:at]...)
	return arrows(append(names, names[0]))
}

// arrows joins the names of a path. It shortens a long path in the middle.
func arrows(names []string) string {
	if n := len(names); n > resolutionPath {
		names = slices.Concat(names[:resolutionPath/2], []string{fmt.Sprintf("(%d others)", n-resolutionPath)}, names[n-resolutionPath/2:])
	}
	return strings.Join(names, " → ")
}

// title returns the package of a slot, or the instance if the package is unknown.
func (s *search) title(i int32) string { return cmp.Or(s.slots[i].name, s.slots[i].instance.Name) }

// conflicts describes the requirements on each package that several of them share.
func (s *search) conflicts(core []int32) []string {
	var targets []int32
	of := map[int32][]int32{}
	for _, id := range core {
		for _, t := range s.edges[id].targets {
			if of[t.slot] == nil {
				targets = append(targets, t.slot)
			}
			of[t.slot] = append(of[t.slot], id)
		}
		for _, t := range s.edges[id].clash {
			if of[t] == nil {
				targets = append(targets, t)
				of[t] = []int32{}
			}
		}
	}

	slices.SortStableFunc(targets, func(a, b int32) int {
		return cmp.Or(cmp.Compare(len(of[b]), len(of[a])), cmp.Compare(s.title(a), s.title(b)))
	})

	var texts []string
	shared := false
	for _, t := range targets {
		needs := of[t]
		narrows := func() bool { // excludes some values of a slot, but not all of them on its own
			fits := s.together(t, needs)
			return slices.Contains(fits, false) && slices.Contains(fits, true) || s.slots[t].installed != nil
		}
		if len(needs) > 1 || len(needs) == 1 && narrows() {
			texts = append(texts, s.conflict(t, needs))
			shared = shared || len(needs) > 1
		}
	}

	for _, id := range core {
		if c := s.edges[id].clash; c != nil {
			texts = append(texts, fmt.Sprintf("%s can be installed only once in its scope.", s.title(c[0])))
		}
	}

	if shared {
		texts = append(texts[:min(len(texts), resolutionNearest)], "Change one of these ranges, in spec.dependencies.overrides or in the package that states it.")
	}

	return texts
}

// conflict describes the requirements on one package, its refused versions, and how to change an
// installed one.
func (s *search) conflict(t int32, needs []int32) string {
	of := &s.slots[t]
	text := fmt.Sprintf("%s is required in %s.", s.title(t), few(s.demands(needs)))
	if len(needs) > 1 && !slices.ContainsFunc(s.together(t, needs), func(fit bool) bool { return fit }) {
		text = fmt.Sprintf("No version of %s fits all its dependents: %s.", s.title(t), few(s.demands(needs)))
	}

	switch i := of.installed; {
	case i == nil:
		if refused := s.refused(t, needs); refused != "" && len(needs) > 1 {
			text += " " + refused + "."
		}
	case len(of.values) > 1:
		text += fmt.Sprintf(" It is installed as %s in %s, and is never downgraded automatically.", i.Instance, i.Version) + s.lower(i, needs)
	case !s.heeds(i):
		text += fmt.Sprintf(" It is installed as %s in %s, and %s", i.Instance, i.Version, clusterOnly)
	case i.Changeable:
		text += fmt.Sprintf(" It is installed as %s in %s, and no higher version is offered.", i.Instance, i.Version) + s.lower(i, needs)
	default:
		text += fmt.Sprintf(" It is installed as %s in %s. Change its version, or set spec.upgradePolicy.allowDependents in it if it has a packageRef.", i.Instance, i.Version)
	}

	return text
}

// lower returns how to downgrade an installed package to a version that fits all needs; empty if
// there is no such version.
func (s *search) lower(i *Installed, needs []int32) string {
	for _, v := range s.versions(place{i.Namespace, i.Package}) {
		*s.steps += len(needs)
		if !slices.ContainsFunc(needs, func(id int32) bool { return !s.fitsValue(s.edges[id].dependency, &v) }) {
			return fmt.Sprintf(" %s fits: %s.", v.version, lowerByHand(i, v.version))
		}
	}
	return ""
}

// together reports for each value of a slot whether it fits all needs.
func (s *search) together(t int32, needs []int32) []bool {
	fits := make([]bool, len(s.slots[t].values))
	*s.steps += len(fits) * len(needs)
	for v := range fits {
		fits[v] = s.refuses(t, needs, v) < 0
	}
	return fits
}

// refuses returns the first need that a value does not fit, or -1.
func (s *search) refuses(t int32, needs []int32, v int) int32 {
	for _, id := range needs {
		for _, to := range s.edges[id].targets {
			if to.slot == t && !to.fits[v] {
				return id
			}
		}
	}
	return -1
}

// refused lists the preferred values of a slot that do not fit.
func (s *search) refused(t int32, needs []int32) string {
	var texts []string
	more := 0
	*s.steps += len(s.slots[t].values) * len(needs)
	for v := range s.slots[t].values {
		switch id := s.refuses(t, needs, v); {
		case id < 0:
		case len(texts) < resolutionNearest:
			texts = append(texts, fmt.Sprintf("%s is not within %s", s.slots[t].values[v].version, strconv.Quote(rangeOf(s.edges[id].dependency).Version)))
		default:
			more++
		}
	}

	if more > 0 {
		texts = append(texts, fmt.Sprintf("%d others are not either", more))
	}

	return strings.Join(texts, ", ")
}

// demands describes requirements by range, dependent and path. Equal requirements of several
// versions of one dependent appear once.
func (s *search) demands(needs []int32) []string {
	var texts []string
	for _, id := range needs {
		if text := s.demand(id); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// demand describes a single requirement by its range and dependent.
func (s *search) demand(id int32) string {
	want := rangeOf(s.edges[id].dependency).Version
	text := "any version"
	if want != "" {
		text = strconv.Quote(want)
	}
	by := s.dependent(id)
	if path := s.path(s.edges[id].slot); len(path) > 1 {
		by += ", path " + arrows(append(path, s.edges[id].name))
	}
	return text + " (by " + by + ")"
}

// dependent names the owner of a requirement: an existing instance, or a package and its version.
func (s *search) dependent(id int32) string {
	e := &s.edges[id]
	if of := &s.slots[e.slot]; of.installed == nil || e.value > 0 {
		return s.title(e.slot) + " " + of.values[e.value].version
	}
	return s.slots[e.slot].instance.String()
}

// path returns the names on the way to a slot from a root, or from an installed package without
// dependents. Call it only after the search.
func (s *search) path(of int32) []string {
	if known, ok := s.paths[of]; ok {
		return known
	}

	var names []string
	seen := map[int32]bool{}
	for i := of; i >= 0 && !seen[i]; {
		seen[i] = true
		at := &s.slots[i]
		switch {
		case at.root != nil:
			names = append(names, at.instance.Name)
		case at.installed != nil:
			above := s.installedPath(at.installed)
			slices.Reverse(above)
			names = append(names, above...)
		default:
			names = append(names, s.title(i))
		}
		if at.installed != nil || at.via < 0 {
			break
		}
		i = s.edges[at.via].slot
	}

	slices.Reverse(names)
	s.paths[of] = slices.Clip(names)
	return s.paths[of]
}

// installedPath returns the names on the way to an installed package, along the first dependent of
// each.
func (s *search) installedPath(i *Installed) []string {
	names := []string{i.Name}
	seen := map[Instance]bool{i.Instance: true}
	for {
		all := s.world.heeded(i)
		if len(all) == 0 {
			break
		}

		first := slices.MinFunc(all, func(a, b recorded) int { return a.dependent.Instance.Compare(b.dependent.Instance) })
		if i = first.dependent; seen[i.Instance] {
			break
		}

		seen[i.Instance] = true
		names = slices.Insert(names, 0, i.Name)
	}

	return names
}

// PassedOver explains why a root does not have its preferred version. alone is the result of
// resolving the preferred version on its own.
func PassedOver(version, preferred string, alone Result) string {
	why := "it conflicts with the dependencies of other packages here"
	if alone.Failed() {
		why = alone.Reason + ": " + alone.Message
		for _, o := range alone.Outcomes {
			if o.Failed && !o.Dependency.Optional {
				why = o.Reason + ": " + alone.Message
				break
			}
		}
	}
	return version + " is the highest version that fits and whose dependencies can be satisfied; " +
		preferred + " waits for its dependencies: " + why
}

// few joins the first few texts.
func few(texts []string) string {
	if n := len(texts) - resolutionMessages; n > 0 {
		return strings.Join(texts[:resolutionMessages], ", ") + fmt.Sprintf(" and %d others", n)
	}
	if len(texts) > 1 {
		return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
	}
	return strings.Join(texts, "")
}
