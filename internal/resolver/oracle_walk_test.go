package resolver_test

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"lockstep.run/lockstep/internal/resolver"
)

// way is a walk over the choices.
type way struct {
	*oracle
	order []*node
	done  int // the first ones, whose mandatory demands are met
}

// walk visits the packages in the order of doc.go, up to the first demand that needs a decision. A
// demand without targets is an optional one, and the decision is whether it takes part. walk
// returns false if a demand cannot be met.
func (w *way) walk() (open *demand, ok bool) {
	w.order = slices.Clone(w.roots)
	if open, ok = w.mandatory(); open != nil || !ok {
		return open, ok
	}

	for _, n := range w.existing {
		if !w.stays(n) && !w.add(n) {
			return nil, false
		}
	}

	if open, ok = w.mandatory(); open != nil || !ok {
		return open, ok
	}

	for at := 0; at < len(w.order); at++ {
		for _, d := range w.demands(w.order[at]) {
			switch takesPart, decided := w.optional[d.key()]; {
			case !d.optional || decided && !takesPart:
				continue
			case !decided:
				d.to = nil
				return &d, !w.cyclic()
			}
			if open, ok = w.meet(&d); open != nil || !ok {
				return open, ok
			}
			if open, ok = w.mandatory(); open != nil || !ok {
				return open, ok
			}
		}
	}

	return nil, !w.cyclic()
}

func (w *way) mandatory() (open *demand, ok bool) {
	for ; w.done < len(w.order); w.done++ {
		for _, d := range w.demands(w.order[w.done]) {
			if d.optional {
				continue
			}
			if open, ok := w.meet(&d); open != nil || !ok {
				return open, ok
			}
		}
	}
	return nil, true
}

// meet continues with the package that satisfies a demand. If it has to be created, meet returns
// the demand.
func (w *way) meet(d *demand) (open *demand, ok bool) {
	if n := w.satisfier(d); n != nil {
		return nil, w.add(n)
	}
	if len(d.to) == 1 && d.to[0].installed == nil && w.choice[d.to[0]] == "" {
		return d, true
	}
	return nil, false
}

// add returns false if the scope has no room for a new package along with the new or changed ones.
func (w *way) add(n *node) bool {
	if slices.Contains(w.order, n) {
		return true
	}

	w.order = append(w.order, n)
	if n.installed != nil {
		return true
	}

	for _, other := range slices.Concat(w.order, w.existing) {
		if other == n || other.name != n.name || other.root != nil || w.stays(other) {
			continue
		}
		if !together(n.namespace, other.namespace, w.offer(n).Unique) || !together(n.namespace, other.namespace, w.offer(other).Unique) {
			return false
		}
	}

	return true
}

// cyclic reports whether a new or changed package, or a root, depends on itself.
func (w *way) cyclic() bool {
	for _, n := range w.order {
		if !w.stays(n) && w.reaches(n, n, map[*node]bool{}) {
			return true
		}
	}
	return false
}

func (w *way) reaches(from, to *node, seen map[*node]bool) bool {
	for _, d := range w.demands(from) {
		if d.optional && !w.optional[d.key()] {
			continue
		}
		next := w.satisfier(&d)
		if next == to {
			return true
		}
		if next != nil && !seen[next] {
			if seen[next] = true; w.reaches(next, to, seen) {
				return true
			}
		}
	}

	return false
}

// best resolves several roots as doc.go specifies: all together or, failing that, first those that
// are satisfied, then each root that has a solution with those before it, regardless of those after
// it. It returns the text that solutionOf returns for the plan.
func best(in resolver.Input) string {
	if o := newOracle(in); o.solve() {
		return o.solution()
	}

	order := newOracle(in).roots
	slices.SortStableFunc(order, func(a, b *node) int {
		switch x, y := isSatisfied(in, a.root), isSatisfied(in, b.root); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})

	accepted := []resolver.Root{}
	for k, n := range order {
		if anyTogether(in, append(slices.Clone(accepted), *n.root), order[k+1:]) {
			accepted = append(accepted, *n.root)
		}
	}

	with := in
	with.Roots = accepted
	if o := newOracle(with); len(accepted) > 0 && o.solve() {
		return o.solution()
	}

	return ""
}

// anyTogether reports whether there is a solution for roots and any subset of others. The rest of
// these stay as they are.
func anyTogether(in resolver.Input, roots []resolver.Root, others []*node) bool {
	with := in
	with.Roots = roots
	if newOracle(with).solve() {
		return true
	}
	return slices.ContainsFunc(others, func(n *node) bool {
		at := slices.Index(others, n)
		return anyTogether(in, append(slices.Clone(roots), *n.root), others[at+1:])
	})
}

// isSatisfied reports whether the installed packages satisfy a root.
func isSatisfied(in resolver.Input, root *resolver.Root) bool {
	in.Roots = []resolver.Root{*root}
	o := newOracle(in)
	for _, n := range o.existing {
		o.choice[n] = n.installed.Version
	}
	return slices.ContainsFunc(versionsOf(root), func(v resolver.RootVersion) bool {
		o.choice[o.roots[0]] = v.Version
		return !slices.ContainsFunc(o.demands(o.roots[0]), func(d demand) bool { return !d.optional && o.satisfier(&d) == nil })
	})
}

// solutionOf formats a plan like solution, showing tentative packages as new.
func solutionOf(plan resolver.Plan, tentative ...resolver.Installed) string {
	var lines []string
	created, isTentative := map[resolver.Instance]string{}, func(i resolver.Instance) bool {
		return slices.ContainsFunc(tentative, func(t resolver.Installed) bool { return t.Instance == i })
	}

	for _, s := range plan.Steps {
		at := s.String()
		if s.Create || isTentative(s.Instance) {
			at = "new " + s.Namespace + " " + s.Package
			created[s.Instance] = at
		}
		lines = append(lines, at+" "+s.Version)
	}

	for _, r := range plan.Results {
		if fails(r) {
			continue
		}
		lines = append(lines, r.String()+" "+r.Version)
		for _, o := range r.Outcomes {
			text := "without"
			if o.Satisfier != nil && !o.Failed {
				text = cmp.Or(created[*o.Satisfier], o.Satisfier.String())
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s", r.Instance, o.Dependency.Name, text))
		}
	}

	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func fails(r resolver.Result) bool {
	return slices.ContainsFunc(r.Outcomes, func(o resolver.Outcome) bool { return o.Failed && !o.Dependency.Optional })
}
