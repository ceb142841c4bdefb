package resolver

import "slices"

// outcome is the outcome of a search.
type outcome int

const (
	// solved means that every choice has been made.
	solved outcome = iota
	// unsolvable means that the requirements exclude every solution.
	unsolvable
	// exhausted means that the steps were used up, and a solution is unknown.
	exhausted
)

// run searches for a solution. If there is none, it returns the requirements that exclude one.
func (s *search) run() (outcome, []int32) {
	for _, i := range s.walk.queue {
		if len(s.slots[i].values) == 1 {
			s.expand(i, 0)
		}
	}

	for {
		if s.isSpent() {
			return exhausted, nil
		}

		if c := s.propagate(); c != nil {
			if !s.learn(c) {
				return unsolvable, s.core(c)
			}
			s.restore()
			continue
		}

		l, state := s.next()
		s.restore()
		switch state {
		case stepDecide:
			s.marks = append(s.marks, s.walk)
			s.decide(l)
		case stepDone:
			return solved, nil
		}
	}
}

// restore returns the walk to its state at the present level.
func (s *search) restore() {
	if d := int(s.depth()); d < len(s.marks) {
		s.walk = s.marks[d]
		s.marks = s.marks[:d]
	}
}

// step is the result of the walk up to the next decision.
type step int

const (
	stepDecide    step = iota
	stepPropagate      // there are new clauses
	stepDone
)

// next continues the walk up to the next decision.
func (s *search) next() (literal, step) {
	for _, i := range s.chosenFirst {
		if s.chosen(i) >= 0 {
			continue
		}
		if l := s.prefer(i, nil); l >= 0 {
			return l, stepDecide
		}
		s.add(structure, s.anyOf(i, nil)...)
		return 0, stepPropagate
	}

	for {
		if l, state := s.mandatory(); state != stepDone {
			return l, state
		}
		if !s.walk.changed {
			s.walk.changed = true
			// No requirement of the walk leads to these changed packages; their dependents outside of
			// it constrain them.
			for _, i := range s.changeable {
				if s.chosen(i) > 0 && !s.isReached(i) {
					s.reach(i, -1)
				}
			}
			continue
		}
		if s.findCycle() {
			return 0, stepPropagate
		}
		l, state, more := s.optional()
		if state != stepDone || !more {
			return l, state
		}
	}
}

// prefer returns the preferred open value among those that fit.
func (s *search) prefer(i int32, fits []bool) literal {
	for v := range s.slots[i].values {
		if l := yes(s.slots[i].first + int32(v)); (fits == nil || fits[v]) && s.value(l) == 0 {
			return l
		}
	}
	return -1
}

// isReached reports whether a slot is in the present queue. Its position can be from a part of the
// queue that was cut since.
func (s *search) isReached(i int32) bool {
	at := s.slots[i].position
	return at >= 0 && at < len(s.walk.queue) && s.walk.queue[at] == i
}

// reach appends a slot to the queue, with the requirement that led to it.
func (s *search) reach(i, via int32) {
	of := &s.slots[i]
	of.position, of.via = len(s.walk.queue), via
	// The queue of an earlier level is a prefix of this one, which was possibly cut and grew
	// differently.
	s.walk.queue = append(s.walk.queue, i)
}

// mandatory visits the mandatory requirements.
func (s *search) mandatory() (literal, step) {
	for ; s.walk.node < len(s.walk.queue); s.walk.node, s.walk.edge = s.walk.node+1, 0 {
		i := s.walk.queue[s.walk.node]
		v := s.chosen(i)
		known := s.slots[i].expanded[v] != nil
		edges := s.expand(i, v)
		// New clauses can have pending consequences.
		if !known && (len(s.pending) > 0 || s.head < len(s.trail) || int(s.depth()) < len(s.marks)) {
			return 0, stepPropagate
		}
		for ; s.walk.edge < len(edges); s.walk.edge++ {
			if e := edges[s.walk.edge]; s.edges[e].selector < 0 {
				if l, state := s.follow(e); state != stepDone {
					return l, state
				}
			}
		}
	}

	return 0, stepDone
}

// follow reaches the package that satisfies a requirement, or returns the decision about it.
func (s *search) follow(id int32) (literal, step) {
	e := &s.edges[id]
	if e.disabled || e.served || len(e.targets) == 0 {
		return 0, stepDone
	}

	to := s.satisfier(e)
	if to < 0 {
		for _, t := range e.targets {
			if s.chosen(t.slot) < 0 {
				if l := s.prefer(t.slot, t.fits); l >= 0 {
					return l, stepDecide
				}
			}
		}
		s.enforce(id) // it can no longer be satisfied
		return 0, stepPropagate
	}

	if !s.isReached(to) {
		if s.addClash(to) {
			return 0, stepPropagate
		}
		s.reach(to, id)
	}

	return 0, stepDone
}

// satisfier returns the slot whose value satisfies a requirement, or -1.
func (s *search) satisfier(e *edge) int32 {
	for _, t := range e.targets {
		if v := s.chosen(t.slot); v >= 0 && t.fits[v] {
			return t.slot
		}
	}
	return -1
}

// addClash adds a clause if another slot leaves no room for a new one.
func (s *search) addClash(i int32) bool {
	of := &s.slots[i]
	if of.installed != nil {
		return false
	}

	v := s.chosen(i)
	for _, o := range s.named[of.name] {
		other := &s.slots[o]
		w := s.chosen(o)
		if o == i || w < 0 || other.installed == nil && !s.isReached(o) {
			continue
		}

		unique := other.values[w].offer
		if !clash(of.namespace, other.namespace, of.values[v].offer.Unique) && (unique == nil || !clash(of.namespace, other.namespace, unique.Unique)) {
			continue
		}

		e := edge{slot: i, selector: -1, clash: []int32{i, o}, name: of.name}
		s.edges = append(s.edges, e)
		s.add(int32(len(s.edges)-1), no(of.first+v), no(other.first+w))
		return true
	}

	return false
}

// optional visits the optional requirements of the reached packages, and reports whether there is
// more to walk.
func (s *search) optional() (literal, step, bool) {
	w := &s.walk
	for ; w.optional < len(w.queue); w.optional, w.optionalAt = w.optional+1, 0 {
		i := w.queue[w.optional]
		edges := s.slots[i].expanded[s.chosen(i)]
		for ; w.optionalAt < len(edges); w.optionalAt++ {
			e := &s.edges[edges[w.optionalAt]]
			if e.selector < 0 || e.disabled {
				continue
			}
			switch s.assigned[e.selector] {
			case 0: // try to satisfy it; a conflict gives it up
				return yes(e.selector), stepDecide, false
			case 1:
				l, state := s.follow(edges[w.optionalAt])
				if state == stepDone {
					w.optionalAt++
				}
				return l, state, true
			}
		}
	}

	return 0, stepDone, false
}

// isActive reports whether the present solution has to satisfy a requirement.
func (s *search) isActive(id int32) bool {
	e := &s.edges[id]
	return !e.disabled && (e.selector < 0 || s.assigned[e.selector] > 0)
}

// findCycle adds a clause that excludes a cycle, if there is one. It ignores cycles among
// requirements of installed packages that stay.
func (s *search) findCycle() bool {
	stamp := [3]int{len(s.walk.queue), s.walk.optional, s.walk.optionalAt}
	if s.walk.checked == stamp {
		return false
	}

	s.walk.checked = stamp
	*s.steps += len(s.walk.queue)
	color := make([]int8, len(s.slots)) // 1 on the way, 2 done
	var way []int32                     // edges
	isKept := false                     // there is a cycle of kept edges
	var visit func(i int32) []int32
	visit = func(i int32) []int32 {
		color[i] = 1
		for _, e := range s.slots[i].expanded[s.chosen(i)] {
			switch to := s.leadsTo(e); {
			case to < 0 || color[to] == 2:
				continue
			case color[to] == 1:
				if c := s.cycleOf(append(way, e), to); c != nil {
					return c
				}
				isKept = true
				continue
			default:
				way = append(way, e)
				if c := visit(to); c != nil {
					return c
				}
				way = way[:len(way)-1]
			}
		}
		color[i] = 2
		return nil
	}

	for _, i := range s.walk.queue {
		if color[i] == 0 {
			if c := visit(i); c != nil {
				s.excludeCycle(c)
				return true
			}
		}
	}

	return isKept && s.findCycleBesideKept()
}

// findCycleBesideKept looks for a cycle that findCycle can miss because it shares slots with a
// cycle of kept edges.
func (s *search) findCycleBesideKept() bool {
	for _, i := range s.walk.queue {
		if !slices.ContainsFunc(s.slots[i].expanded[s.chosen(i)], func(e int32) bool { return !s.edges[e].kept }) {
			continue
		}
		if c := s.cycleThrough(i); c != nil {
			s.excludeCycle(c)
			return true
		}
	}
	return false
}

// cycleThrough returns the edges of a shortest way from a slot back to itself, or nil.
func (s *search) cycleThrough(i int32) []int32 {
	via := map[int32]int32{} // edges by the slots that they reached first
	for queue := []int32{i}; len(queue) > 0; queue = queue[1:] {
		for _, e := range s.slots[queue[0]].expanded[s.chosen(queue[0])] {
			to := s.leadsTo(e)
			if _, seen := via[to]; to < 0 || seen {
				continue
			}
			if via[to] = e; to != i {
				queue = append(queue, to)
				continue
			}
			way := []int32{e}
			for s.edges[way[0]].slot != i {
				way = slices.Insert(way, 0, via[s.edges[way[0]].slot])
			}
			return way
		}
	}

	return nil
}

// leadsTo returns the slot that satisfies an active requirement. It returns -1 if the requirement
// is not active, or its slot was not reached.
func (s *search) leadsTo(e int32) int32 {
	if s.isActive(e) {
		if to := s.satisfier(&s.edges[e]); to >= 0 && s.isReached(to) {
			return to
		}
	}
	return -1
}

// cycleOf returns the edges from a slot back to itself, unless all of them are kept.
func (s *search) cycleOf(way []int32, to int32) []int32 {
	at := len(way) - 1
	for s.edges[way[at]].slot != to {
		at--
	}
	if c := way[at:]; slices.ContainsFunc(c, func(e int32) bool { return !s.edges[e].kept }) {
		return slices.Clone(c)
	}
	return nil
}

// excludeCycle adds a clause that at least one edge of a cycle must not be part of the solution.
func (s *search) excludeCycle(cycle []int32) {
	var literals []literal
	for _, id := range cycle {
		e := &s.edges[id]
		if literals = append(literals, no(s.slots[e.slot].first+s.chosen(e.slot))); e.selector >= 0 {
			literals = append(literals, no(e.selector))
		}
	}
	s.edges = append(s.edges, edge{slot: s.edges[cycle[0]].slot, selector: -1, cycle: cycle})
	s.add(int32(len(s.edges)-1), literals...)
}
