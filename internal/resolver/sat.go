package resolver

import "slices"

// literal is a variable. The lowest bit negates it.
type literal int32

// yes and no return the literals of a variable.
func yes(v int32) literal           { return literal(v << 1) }
func no(v int32) literal            { return literal(v<<1 | 1) }
func (l literal) variable() int32   { return int32(l >> 1) }
func (l literal) negated() literal  { return l ^ 1 }
func (l literal) wants() assignment { return assignment(1 - 2*(l&1)) }

// assignment is the value of a variable or literal.
type assignment int8 // 1 true, -1 false, 0 open

const (
	undecided = int32(-1) // the reason of a decision
	structure = int32(-1) // the edge of a clause that no requirement causes
)

// clause is a disjunction.
type clause struct {
	literals []literal
	// edge is the requirement that causes the clause, or structure.
	edge int32
	// from are the clauses that a learned clause follows from, and the permanently assigned
	// variables v as -1-v.
	from []int32
}

// sat is a CDCL solver with first unique implication points. It accepts new clauses during the
// search. Variables of a group exclude each other.
type sat struct {
	assigned []assignment
	level    []int32
	// reason is the clause that forced a variable, or undecided. It is -2-v if the variable v of
	// the same group did.
	reason  []int32
	group   []int32
	members [][]int32
	picked  []int32 // the true variable of each group, or undecided
	clauses []clause
	watches [][]int32 // by literal
	trail   []literal
	starts  []int // the start of each level but 0 in the trail
	head    int
	steps   *int    // shared with the rest of the resolution
	pending []int32 // clauses that were already false when they were added
	marked  []bool
	// arena is preallocated room for the literals of clauses.
	arena []literal
}

// conflict is a false clause; id is -1 for the implicit clause of a group.
type conflict struct {
	literals []literal
	id       int32
}

// depth returns the number of decisions so far.
func (s *sat) depth() int32 { return int32(len(s.starts)) }

// value returns the value of a literal under the present assignment.
func (s *sat) value(l literal) assignment { return s.assigned[l.variable()] * l.wants() }

// addVariable returns a new variable; group is -1 if it has none.
func (s *sat) addVariable(group int32) int32 {
	v := int32(len(s.assigned))
	s.assigned, s.level, s.reason = append(s.assigned, 0), append(s.level, 0), append(s.reason, undecided)
	s.group, s.marked = append(s.group, group), append(s.marked, false)
	s.watches = append(s.watches, nil, nil)
	if group >= 0 {
		s.members[group] = append(s.members[group], v)
	}
	return v
}

// addGroup returns a new group without variables.
func (s *sat) addGroup() int32 {
	s.members, s.picked = append(s.members, nil), append(s.picked, undecided)
	return int32(len(s.members) - 1)
}

// fix assigns a new variable permanently. No clause can contain it yet.
func (s *sat) fix(v int32) { s.assigned[v], s.picked[s.group[v]] = 1, v }

// add adds a clause. It can be called at any time.
func (s *sat) add(edge int32, literals ...literal) {
	if len(literals) == 1 && len(s.starts) > 0 {
		s.backTo(0)
	}

	id := int32(len(s.clauses))
	// Watch open and true literals, or else the ones assigned last.
	for i := range min(2, len(literals)) {
		for j := i + 1; j < len(literals); j++ {
			if s.watchRank(literals[j]) > s.watchRank(literals[i]) {
				literals[i], literals[j] = literals[j], literals[i]
			}
		}
	}

	s.clauses = append(s.clauses, clause{literals: literals, edge: edge})
	if len(literals) > 1 {
		s.watch(literals[0], id)
		s.watch(literals[1], id)
	}

	switch {
	case len(literals) == 0 || s.value(literals[0]) < 0:
		s.pending = append(s.pending, id)
	case s.value(literals[0]) == 0 && (len(literals) == 1 || s.value(literals[1]) < 0):
		s.assign(literals[0], id)
	}
}

// joined returns literals plus l, as an argument for add.
func (s *sat) joined(literals []literal, l literal) []literal {
	if n := len(literals) + 1; cap(s.arena)-len(s.arena) < n {
		s.arena = make([]literal, 0, max(n, 4096))
	}

	from := len(s.arena)
	s.arena = append(append(s.arena, literals...), l)
	return s.arena[from:len(s.arena):len(s.arena)]
}

// watchRank ranks open and true literals above false ones, and false ones by their level. The false
// literal of the highest level becomes open first when the search goes back.
func (s *sat) watchRank(l literal) int32 {
	if s.value(l) >= 0 {
		return 1<<30 + int32(s.value(l))
	}
	return s.level[l.variable()]
}

// watch makes propagate visit a clause when the literal becomes false.
func (s *sat) watch(l literal, id int32) { s.watches[l] = append(s.watches[l], id) }

// assign makes a literal true at the present level.
func (s *sat) assign(l literal, reason int32) {
	v := l.variable()
	s.assigned[v], s.level[v], s.reason[v] = l.wants(), s.depth(), reason
	s.trail = append(s.trail, l)
	if g := s.group[v]; g >= 0 && l.wants() > 0 {
		s.picked[g] = v
	}
}

// decide assigns a literal at a new level.
func (s *sat) decide(l literal) {
	s.starts = append(s.starts, len(s.trail))
	s.assign(l, undecided)
}

// backTo undoes all assignments above a level.
func (s *sat) backTo(level int32) {
	if level >= s.depth() {
		return
	}

	for _, l := range s.trail[s.starts[level]:] {
		v := l.variable()
		s.assigned[v] = 0
		if g := s.group[v]; g >= 0 && s.picked[g] == v {
			s.picked[g] = undecided
		}
	}

	s.trail = s.trail[:s.starts[level]]
	s.starts = s.starts[:level]
	s.head = min(s.head, len(s.trail))
}

// propagate assigns all consequences, and stops at a conflict.
func (s *sat) propagate() *conflict {
	for len(s.pending) > 0 {
		id := s.pending[0]
		s.pending = s.pending[1:]
		if c := s.clauses[id].literals; s.isFalse(c) {
			return &conflict{c, id}
		} else if s.value(c[0]) == 0 && s.isFalse(c[1:]) {
			s.assign(c[0], id)
		}
	}

	for s.head < len(s.trail) {
		l := s.trail[s.head]
		s.head++
		if c := s.exclude(l); c != nil {
			return c
		}
		if c := s.visit(l.negated()); c != nil {
			return c
		}
	}

	return nil
}

// isFalse reports whether no literal is true or open.
func (s *sat) isFalse(literals []literal) bool {
	return !slices.ContainsFunc(literals, func(l literal) bool { return s.value(l) >= 0 })
}

// exclude assigns false to the other variables of a group.
func (s *sat) exclude(l literal) *conflict {
	v := l.variable()
	if l.wants() < 0 || s.group[v] < 0 {
		return nil
	}

	for _, other := range s.members[s.group[v]] {
		*s.steps++
		switch {
		case other == v || s.assigned[other] < 0:
		case s.assigned[other] > 0:
			return &conflict{[]literal{no(v), no(other)}, -1}
		default:
			s.assign(no(other), -2-v)
		}
	}

	return nil
}

// visit checks the clauses that watch a literal, which became false.
func (s *sat) visit(l literal) *conflict {
	list := s.watches[l]
	kept := list[:0]
	for n, id := range list {
		*s.steps++
		c := s.clauses[id].literals
		if c[0] == l {
			c[0], c[1] = c[1], c[0]
		}
		if s.value(c[0]) > 0 || !s.rewatch(c, id) {
			kept = append(kept, id)
			switch s.value(c[0]) {
			case 0:
				s.assign(c[0], id)
			case -1:
				kept = append(kept, list[n+1:]...)
				s.watches[l] = kept
				return &conflict{c, id}
			}
		}
	}

	s.watches[l] = kept
	return nil
}

// rewatch replaces the second watched literal with another one that is not false, if there is one.
func (s *sat) rewatch(c []literal, id int32) bool {
	for k := 2; k < len(c); k++ {
		*s.steps++
		if s.value(c[k]) >= 0 {
			c[1], c[k] = c[k], c[1]
			s.watch(c[1], id)
			return true
		}
	}
	return false
}

// learn turns a conflict into a clause that prevents it, goes back and assigns the consequences. It
// returns false if the conflict does not depend on a decision.
func (s *sat) learn(c *conflict) bool {
	top := int32(0)
	for _, l := range c.literals {
		top = max(top, s.level[l.variable()])
	}

	// A clause that was added during the search can be false already at a lower level.
	if s.backTo(top); top == 0 {
		return false
	}

	literals, from := s.analyze(c, top)
	back := int32(0)
	for i := 1; i < len(literals); i++ {
		if at := s.level[literals[i].variable()]; at > back {
			back = at
			literals[1], literals[i] = literals[i], literals[1]
		}
	}

	// After going back, the first literal is the only open one. The second watch is the false
	// literal of the highest level, because it becomes open first when the search goes back
	// further.
	s.backTo(back)
	id := int32(len(s.clauses))
	s.clauses = append(s.clauses, clause{literals: literals, edge: structure, from: from})
	if len(literals) > 1 {
		s.watch(literals[0], id)
		s.watch(literals[1], id)
	}

	s.assign(literals[0], id)
	return true
}

// analyze resolves a conflict with the reasons of its literals until a single literal of the level
// is left, which becomes the first one.
func (s *sat) analyze(c *conflict, top int32) (learned []literal, from []int32) {
	learned = []literal{0}
	open, at := 0, len(s.trail)-1
	var marks []int32
	literals, id := c.literals, c.id
	for {
		if id >= 0 {
			from = append(from, id)
		}
		for _, l := range literals {
			v := l.variable()
			*s.steps++
			if s.marked[v] || s.value(l) > 0 {
				continue
			}
			s.marked[v] = true
			marks = append(marks, v)
			switch s.level[v] {
			case 0:
				from = append(from, -1-v)
			case top:
				open++
			default:
				learned = append(learned, l)
			}
		}

		// The latest marked literal of this level is resolved next. The last one left is the first
		// unique implication point.
		for !s.marked[s.trail[at].variable()] || s.level[s.trail[at].variable()] != top {
			at--
		}

		l := s.trail[at]
		at--
		if open--; open == 0 {
			learned[0] = l.negated()
			break
		}
		literals, id = s.because(l)
	}

	for _, v := range marks {
		s.marked[v] = false
	}

	return learned, from
}

// because returns the clause that forced a literal.
func (s *sat) because(l literal) ([]literal, int32) {
	reason := s.reason[l.variable()]
	if reason <= -2 {
		return []literal{l, no(-2 - reason)}, -1
	}
	return s.clauses[reason].literals, reason
}

// core returns the edges that cause a conflict without decisions, or the assignment of variables.
func (s *sat) core(c *conflict, variables ...int32) []int32 {
	var edges []int32
	seenClause, seenVariable := map[int32]bool{}, map[int32]bool{}
	var clauses []int32
	if c != nil {
		clauses = append(clauses, c.id)
		for _, l := range c.literals {
			variables = append(variables, l.variable())
		}
	}

	for len(clauses)+len(variables) > 0 {
		if n := len(clauses); n > 0 {
			id := clauses[n-1]
			if clauses = clauses[:n-1]; id < 0 || seenClause[id] {
				continue
			}
			seenClause[id] = true
			if s.clauses[id].edge >= 0 {
				edges = append(edges, s.clauses[id].edge)
			}
			for _, f := range s.clauses[id].from {
				if f >= 0 {
					clauses = append(clauses, f)
				} else {
					variables = append(variables, -1-f)
				}
			}
			continue
		}

		n := len(variables)
		v := variables[n-1]
		if variables = variables[:n-1]; seenVariable[v] {
			continue
		}

		seenVariable[v] = true
		switch reason := s.reason[v]; {
		case reason >= 0:
			clauses = append(clauses, reason)
			for _, l := range s.clauses[reason].literals {
				variables = append(variables, l.variable())
			}
		case reason <= -2:
			variables = append(variables, -2-reason)
		}
	}

	slices.Sort(edges)
	return slices.Compact(edges)
}
