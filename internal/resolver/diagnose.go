package resolver

import (
	"fmt"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const resolutionMinimized = 64 // largest conflict that is minimized; each of its requirements costs a search

// diagnose explains why a root has no solution along with the accepted ones, given the result of
// the search for one. It removes the root's requirements one by one until the rest has a solution.
// until is the step at which it has to stop.
func (r *resolution) diagnose(accepted []*Root, root *Root, s *search, state outcome, core []int32, until int) Result {
	left := root
	failures := map[string]Outcome{}
	for ; state == unsolvable; state, core = s.run() {
		names, o := r.blame(s, root, core, until)
		fewer := *left
		fewer.Dependencies = slices.DeleteFunc(slices.Clone(left.Dependencies), func(d corev1alpha1.Dependency) bool { return slices.Contains(names, d.Name) })
		for _, name := range names {
			failures[name] = o
		}

		// The conflict names no requirement that could be removed.
		if len(left.Dependencies) == len(fewer.Dependencies) {
			return r.every(root, o)
		}

		left = &fewer
		s = newSearch(r.market, byInstance(append(slices.Clone(accepted), left)...), nil, until)
	}

	if state == exhausted {
		return r.exceeded(root)
	}

	s.nameAll()
	return r.partial(root, left, s, failures)
}

// partial combines the requirements that fail with those that could be satisfied.
func (r *resolution) partial(root, left *Root, s *search, failures map[string]Outcome) Result {
	rest := map[string]Outcome{}
	for _, o := range s.result(left).Outcomes {
		to := s.world.at
		// A root with a failed requirement changes no package, so the outcome must not announce
		// one.
		if !o.Failed && !o.Satisfied && (o.Satisfier == nil || to[*o.Satisfier] == nil || to[*o.Satisfier].Version != o.Version) {
			o.Message = fmt.Sprintf("%s could be installed, but another dependency cannot be satisfied.", o.Version)
			o.Satisfier, o.Version = nil, ""
		}
		rest[o.Dependency.Name] = o
	}

	result := Result{Instance: root.Instance}
	for _, d := range root.Dependencies {
		o, ok := failures[d.Name]
		if !ok {
			o = rest[d.Name]
		}
		o.Dependency = d
		result.Outcomes = append(result.Outcomes, o)
	}

	result.conclude()
	return result
}

// blame returns the last requirement of the root in a conflict, with the explanation. If the root's
// own requirements exclude each other regardless of other packages, it returns all of them.
func (r *resolution) blame(s *search, root *Root, core []int32, until int) ([]string, Outcome) {
	own, core := r.ownConflict(s, root, core, until)
	isOwn := own != s
	s, core = r.minimized(own, core, until)
	var names []string
	var direct *edge
	for _, id := range core {
		for _, k := range append(slices.Clone(s.edges[id].cycle), id) {
			e := &s.edges[k]
			if of := s.slots[e.slot].root; of != nil && of.Instance == root.Instance && e.dependency != nil {
				if names = append(names, e.dependency.Name); slices.Max(names) == e.dependency.Name {
					direct = e
				}
			}
		}
	}

	reason, message := s.explain(core)
	o := Outcome{Failed: true, Reason: reason, Message: message}
	if direct != nil && len(direct.targets) == 1 {
		if i := s.slots[direct.targets[0].slot].installed; i != nil {
			at := i.Instance
			o.Satisfier, o.Version = &at, i.Version
		}
	}

	// Removing one of several can be enough; diagnose removes the next one if it is not.
	if !isOwn && len(names) > 0 {
		names = []string{slices.Max(names)}
	}

	return names, o
}

// ownConflict prefers a conflict within the packages that the root leads to over one with the
// requirements of other packages. It returns the given conflict if there is no other.
func (r *resolution) ownConflict(s *search, root *Root, core []int32, until int) (*search, []int32) {
	if !slices.ContainsFunc(core, func(id int32) bool { return s.edges[id].kept }) {
		return s, core
	}

	m, in := *r.market, *r.market.input
	in.Installed = nil
	m.input = &in
	t := newSearch(&m, []*Root{s.world.rootOf[root.Instance]}, nil, min(*r.spent+r.limit/resolutionMinimized, until))
	state, own := t.run()

	if state != unsolvable || slices.ContainsFunc(own, func(id int32) bool { return t.edges[id].problem != "" }) {
		return s, core
	}

	return t, own
}

// minimized drops each requirement that the conflict does not need.
func (r *resolution) minimized(s *search, core []int32, until int) (*search, []int32) {
	var keys []edgeKey
	for _, id := range core {
		for _, k := range append(slices.Clone(s.edges[id].cycle), id) {
			if e := &s.edges[k]; e.dependency != nil {
				keys = append(keys, s.keyOf(e))
			}
		}
	}

	if len(keys) > resolutionMinimized {
		return s, core
	}

	try := func(keys []edgeKey) (*search, []int32) {
		only := map[edgeKey]bool{}
		for _, k := range keys {
			only[k] = true
		}
		t := searchIn(r.market, s.world, only, min(*r.spent+r.limit/resolutionMinimized, until))
		if state, core := t.run(); state == unsolvable {
			return t, core
		}
		return nil, nil
	}

	best, bestCore := try(keys)
	if best == nil {
		return s, core
	}

	// If the rest is still unsolvable without a requirement, the conflict does not need it.
	for i := 0; i < len(keys) && *r.spent <= until; {
		fewer := slices.Delete(slices.Clone(keys), i, i+1)
		if t, c := try(fewer); t != nil {
			keys, best, bestCore = fewer, t, c
		} else {
			i++
		}
	}

	return best, bestCore
}

// exceeded returns the result of a search that reached the limit.
func (r *resolution) exceeded(root *Root) Result {
	return r.every(root, Outcome{Failed: true, Reason: corev1alpha1.ReasonResolutionLimit, Message: fmt.Sprintf(
		"The search for fitting versions reached the limit of %d steps. Narrow ranges in spec.dependencies.overrides, or install some of the dependencies first.", r.limit)})
}

// every gives all requirements of a root the same outcome.
func (r *resolution) every(root *Root, o Outcome) Result {
	result := Result{Instance: root.Instance}
	for _, d := range root.Dependencies {
		o.Dependency = d
		result.Outcomes = append(result.Outcomes, o)
	}

	result.conclude()
	return result
}
