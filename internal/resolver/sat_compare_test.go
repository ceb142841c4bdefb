package resolver_test

import (
	"github.com/go-air/gini"
	"github.com/go-air/gini/z"

	"lockstep.run/lockstep/internal/resolver"
)

// satisfiable hands all of a problem to a SAT solver, without its optional requirements. Models with cycles are excluded
// one by one.
func satisfiable(in resolver.Input) bool {
	o := newOracle(in)
	g := gini.New()
	literals := map[[2]string]z.Lit{}
	values := map[string][]string{"shop": {"1.0.0"}}
	reachable := o.reachable()
	for name, all := range o.offers {
		for _, v := range all {
			if o.installed[name] == nil && name != "shop" {
				values[name] = append(values[name], v.Version)
			}
		}
	}
	for name, i := range o.installed {
		values[name] = []string{i.Version}
		if i.Changeable && reachable[name] {
			values[name] = append(values[name], o.above(name, i.Version)...)
		}
	}
	clause := func(all ...z.Lit) {
		for _, l := range all {
			g.Add(l)
		}
		g.Add(z.LitNull)
	}
	for name, all := range values {
		var some []z.Lit
		for _, v := range all {
			l := g.Lit()
			for _, other := range some {
				clause(l.Not(), other.Not())
			}
			some = append(some, l)
			literals[[2]string{name, v}] = l
		}
		if name == "shop" || o.installed[name] != nil {
			clause(some...)
		}
	}
	for name, all := range values {
		for _, v := range all {
			o.choice[name] = v
			for name, i := range o.installed { // demands that are kept compare with what is installed
				if name != "" && o.choice[name] == "" {
					o.choice[name] = i.Version
				}
			}
			demands, _ := o.demands(name)
			for _, d := range demands {
				if d.optional {
					continue
				}
				some := []z.Lit{literals[[2]string{name, v}].Not()}
				for _, w := range values[d.name] {
					if inRange(d.want, w) {
						some = append(some, literals[[2]string{d.name, w}])
					}
				}
				clause(some...)
			}
		}
	}
	for g.Solve() == 1 {
		clear(o.choice)
		var model []z.Lit
		for name, all := range values {
			for _, v := range all {
				if l := literals[[2]string{name, v}]; g.Value(l) {
					o.choice[name] = v
					model = append(model, l.Not())
				}
			}
		}
		if !o.cyclic() {
			return true
		}
		clause(model...)
	}
	return false
}
