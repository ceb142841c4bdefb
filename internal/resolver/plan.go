package resolver

import (
	"cmp"
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// nameAll names each new slot after its first dependent, and appends a hash if the name is taken.
func (s *search) nameAll() {
	used := map[Instance]bool{}
	for _, i := range s.walk.queue {
		of := &s.slots[i]
		if of.installed != nil {
			continue
		}

		e := &s.edges[of.via]
		of.instance = s.childOf(e)
		if t := s.world.tentativeOf(of, of.instance); t != nil && !used[t.Instance] {
			of.instance, of.tentative = t.Instance, t
			used[of.instance] = true
			continue
		}

		if s.world.at[of.instance] != nil || used[of.instance] {
			of.instance = Child(s.slots[e.slot].instance, e.dependency.Name+hashed(of.name))
		}
		used[of.instance] = true
	}
}

// plan returns the creations and changes, dependencies first.
func (s *search) plan() []Step {
	s.nameAll()
	needs := s.needs()
	var steps []Step
	done := make([]bool, len(s.slots))
	var add func(i int32)
	add = func(i int32) {
		if done[i] {
			return
		}

		done[i] = true
		for _, to := range s.dependenciesIn(i) {
			add(to)
		}

		if of, v := &s.slots[i], s.chosen(i); of.root == nil && (of.installed == nil || of.installed != nil && v > 0) {
			steps = append(steps, s.step(i, needs[i]))
		}
	}

	for _, i := range s.walk.queue {
		add(i)
	}

	return steps
}

// dependenciesIn returns the slots that satisfy the requirements of another one.
func (s *search) dependenciesIn(i int32) []int32 {
	var all []int32
	for _, e := range s.slots[i].expanded[s.chosen(i)] {
		if to := s.satisfier(&s.edges[e]); to >= 0 && s.isActive(e) && !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	return all
}

// needs returns the active requirements that each slot satisfies. The one that led to the slot
// comes first.
func (s *search) needs() map[int32][]int32 {
	all := map[int32][]int32{}
	for _, i := range s.walk.queue {
		for _, e := range s.slots[i].expanded[s.chosen(i)] {
			if to := s.satisfier(&s.edges[e]); to >= 0 && s.isActive(e) {
				if s.slots[to].via == e {
					all[to] = slices.Insert(all[to], 0, e)
				} else {
					all[to] = append(all[to], e)
				}
			}
		}
	}

	// Dependents outside of the walk keep their version, and their recorded requirements also limit
	// a changed package.
	for _, i := range s.changeable {
		for _, r := range s.world.heeded(s.slots[i].installed) {
			if e, ok := s.keeps[r.requirement]; ok && e >= 0 && !slices.Contains(all[i], e) && s.chosen(s.edges[e].slot) == s.edges[e].value {
				all[i] = append(all[i], e)
			}
		}
	}

	return all
}

// step returns the creation or change of a slot. needs are the requirements that it satisfies.
func (s *search) step(i int32, needs []int32) Step {
	of, v := &s.slots[i], s.chosen(i)
	step := Step{Instance: of.instance, Create: of.installed == nil && of.tentative == nil, Package: of.name, Version: of.values[v].version}
	switch {
	case of.installed != nil:
		step.From = of.installed.Version
	case of.tentative != nil:
		step.From = of.tentative.Version
	}

	for _, e := range needs {
		step.Needs = append(step.Needs, Need{s.slots[s.edges[e].slot].instance, *s.edges[e].dependency})
	}

	step.For = s.rootAbove(i)
	return step
}

// rootAbove returns the root from which the walk first reached a slot. It is empty for a change
// that no root leads to.
func (s *search) rootAbove(i int32) Instance {
	for s.slots[i].root == nil {
		via := s.slots[i].via
		if via < 0 {
			return Instance{}
		}
		i = s.edges[via].slot
	}
	return s.slots[i].instance
}

// result returns the result of a root that has a solution.
func (s *search) result(root *Root) Result {
	at := s.existing(s.world.at[root.Instance])
	r := Result{Instance: root.Instance, Version: root.at(int(max(s.chosen(at), 0))).Version}

	for _, id := range s.edgesOf(root) {
		e := &s.edges[id]
		if e.selector >= 0 && s.assigned[e.selector] <= 0 && !e.served {
			reason, message := s.explain(s.core(nil, e.selector))
			if e.problem != "" {
				reason, message = e.reason, e.problem
			}
			r.Outcomes = append(r.Outcomes, Outcome{Dependency: *e.dependency, Failed: true, Reason: reason, Message: message})
			continue
		}
		r.Outcomes = append(r.Outcomes, s.outcome(root, e))
	}

	r.conclude()
	return r
}

// outcome describes how a requirement of a root is satisfied.
func (s *search) outcome(root *Root, e *edge) Outcome {
	o := Outcome{Dependency: *e.dependency}
	if e.served {
		return s.servedOutcome(root, o)
	}

	to := s.satisfier(e)
	if to < 0 {
		o.Failed, o.Reason, o.Message = true, e.reason, e.problem
		return o
	}

	of, v := &s.slots[to], s.chosen(to)
	at := of.instance
	o.Satisfier, o.Version, o.Reason = &at, of.values[v].version, corev1alpha1.ReasonNotAvailable
	switch i := of.installed; {
	case of.tentative != nil && of.tentative.Version == of.values[v].version: // it exists already
		o.Message = "Waiting for " + at.String() + " to be available."
	case of.tentative != nil:
		o.Message = fmt.Sprintf("%s is changed from %s to %s.", at, of.tentative.Version, o.Version)
	case i == nil:
		o.Message = fmt.Sprintf("%s %s is to be installed as %s.", of.name, o.Version, at)
	case v > 0:
		o.Message = fmt.Sprintf("%s is changed from %s to %s.", at, i.Version, o.Version)
	case i.Deleting:
		o.Message = at.String() + " is being deleted."
	case i.Version == "" && rangeOf(e.dependency).Version != "":
		o.Message = "Waiting for the version of " + at.String() + " to be known."
	case !i.Available:
		o.Message = "Waiting for " + at.String() + " to be available."
	default:
		o.Satisfied, o.Reason, o.Message = true, corev1alpha1.ReasonAlreadyInstalled, "It is installed as "+at.String()+"."
		if i.Generated && at == Child(root.Instance, e.dependency.Name) {
			o.Reason = corev1alpha1.ReasonInstalledByThisPackage
		}
	}

	return o
}

// servedOutcome names the provider of an API that is served, if exactly one installed package
// provides it and heeds the root. Otherwise the dependency is satisfied without a recorded
// satisfier.
func (s *search) servedOutcome(root *Root, o Outcome) Outcome {
	o.Satisfied, o.Reason, o.Message = true, corev1alpha1.ReasonAPIServed, "The cluster serves it."
	api := corev1alpha1.ProvidedAPI{APIVersion: o.Dependency.API.APIVersion, Kind: o.Dependency.API.Kind}
	var found *Installed
	for _, i := range s.world.byAPI[api] {
		switch {
		case i.Instance == root.Instance || i.Deleting || s.world.private[i.Instance] || !visible(root.Namespace, i) || !i.Heeds(root.Instance):
		case found == nil || found.Package == i.Package && found.Namespace == "" && i.Namespace != "":
			found = i
		// Several packages provide it, so none of them is the provider.
		case found.Package != i.Package:
			return o
		}
	}

	if found == nil {
		return o
	}

	at := found.Instance
	o.Satisfier, o.Version = &at, found.Version
	if found.Generated && !found.Available {
		o.Satisfied, o.Reason, o.Message = false, corev1alpha1.ReasonNotAvailable, "Waiting for "+at.String()+" to be available."
	}

	return o
}

// Failed reports whether the root cannot succeed by waiting.
func (r *Result) Failed() bool {
	return !r.Ready && r.Reason != corev1alpha1.ReasonWaitingForDependencies
}

// conclude derives the condition from the outcomes. If several failed, the first by name determines
// it, with cycles before the others.
func (r *Result) conclude() {
	rank := func(o Outcome) int {
		switch o.Reason {
		case corev1alpha1.ReasonResolutionLimit:
			return 0
		case corev1alpha1.ReasonDependencyCycle:
			return 1
		}
		return 2
	}

	var failed, waiting []Outcome
	for _, o := range r.Outcomes {
		switch {
		case o.Satisfied || o.Dependency.Optional:
		case o.Failed:
			failed = append(failed, o)
		default:
			waiting = append(waiting, o)
		}
	}

	byName := func(a, b Outcome) int { return cmp.Compare(a.Dependency.Name, b.Dependency.Name) }
	switch {
	case len(failed) > 0:
		worst := slices.MinFunc(failed, func(a, b Outcome) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b)) })
		if r.Reason = corev1alpha1.ReasonDependenciesUnsatisfied; rank(worst) < 2 {
			r.Reason = worst.Reason
		}
		r.Message = worst.Dependency.Name + ": " + worst.Message
	case len(waiting) > 0:
		slices.SortFunc(waiting, byName)
		names := make([]string, len(waiting))
		for i := range waiting {
			names[i] = waiting[i].Dependency.Name
		}
		r.Reason, r.Message = corev1alpha1.ReasonWaitingForDependencies, "Waiting for "+few(names)+"."
	default:
		r.Ready, r.Reason = true, corev1alpha1.ReasonDependenciesReady
	}
}
