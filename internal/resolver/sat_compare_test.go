package resolver_test

import (
	"slices"

	"github.com/go-air/gini"
	"github.com/go-air/gini/z"

	"lockstep.run/lockstep/internal/resolver"
)

// satisfiable hands all of a problem to a SAT solver, without its optional requirements. Models with cycles are excluded
// one by one.
func satisfiable(in resolver.Input) bool {
	p := &problem{oracle: newOracle(in), solver: gini.New(), literals: map[chosen]z.Lit{}}
	for _, n := range p.roots {
		p.take(n, p.valuesOf(n)...)
	}
	for _, n := range p.existing {
		p.take(n, p.versions(n)...)
	}
	for k := 0; k < len(p.nodes); k++ { // grows with what may be created
		for _, v := range p.valuesOf(p.nodes[k]) {
			p.require(p.nodes[k], v)
		}
	}
	p.exclude()
	for p.solver.Solve() == 1 {
		clear(p.choice)
		var model []z.Lit
		for at, l := range p.literals {
			if p.solver.Value(l) {
				p.choice[at.node] = at.version
				model = append(model, l.Not())
			}
		}
		if w := (&way{oracle: p.oracle}); !w.leadsToCycle() {
			return true
		}
		p.clause(model...)
	}
	return false
}

type problem struct {
	*oracle
	solver   *gini.Gini
	nodes    []*node
	literals map[chosen]z.Lit
}

func (p *problem) clause(all ...z.Lit) {
	for _, l := range all {
		p.solver.Add(l)
	}
	p.solver.Add(z.LitNull)
}

func (p *problem) valuesOf(n *node) []string {
	if n.root != nil {
		all := versionsOf(n.root)
		texts := make([]string, len(all))
		for i := range all {
			texts[i] = all[i].Version
		}
		return texts
	}
	return p.versions(n)
}

// take adds an instance with its versions: exactly one of them where it exists, or else at most one.
func (p *problem) take(n *node, versions ...string) {
	if slices.Contains(p.nodes, n) {
		return
	}
	p.nodes = append(p.nodes, n)
	var some []z.Lit
	for _, v := range versions {
		l := p.solver.Lit()
		for _, other := range some {
			p.clause(l.Not(), other.Not())
		}
		some = append(some, l)
		p.literals[chosen{n, v}] = l
	}
	if n.root != nil || n.installed != nil {
		p.clause(some...)
	}
}

// require adds the demands of a version.
func (p *problem) require(n *node, version string) {
	p.choice[n] = version
	for _, d := range p.demands(n) {
		if d.optional {
			continue
		}
		some := []z.Lit{p.literals[chosen{n, version}].Not()}
		for _, to := range d.to {
			p.take(to, p.versions(to)...)
			for _, w := range p.versions(to) {
				if inRange(d.want, w) {
					some = append(some, p.literals[chosen{to, w}])
				}
			}
		}
		p.clause(some...)
	}
}

// exclude adds what there is no room for: something new beside something new or changed.
func (p *problem) exclude() {
	for a, l := range p.literals {
		for b, m := range p.literals {
			if a.node == b.node || a.name != b.name || a.installed != nil || a.root != nil || b.installed != nil && b.installed.Version == b.version {
				continue
			}
			p.choice[a.node], p.choice[b.node] = a.version, b.version
			if !together(a.namespace, b.namespace, p.offer(a.node).Unique) || !together(a.namespace, b.namespace, p.offer(b.node).Unique) {
				p.clause(l.Not(), m.Not())
			}
		}
	}
}

// leadsToCycle reports whether the roots, or changed packages, lead to a cycle.
func (w *way) leadsToCycle() bool {
	w.order = slices.Clone(w.roots)
	for _, n := range w.existing {
		if !w.stays(n) {
			w.order = append(w.order, n)
		}
	}
	for at := 0; at < len(w.order); at++ {
		for _, d := range w.demands(w.order[at]) {
			if n := w.satisfier(&d); !d.optional && n != nil && !slices.Contains(w.order, n) {
				w.order = append(w.order, n)
			}
		}
	}
	return w.cyclic()
}
