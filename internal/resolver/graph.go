package resolver

import (
	"cmp"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Graph is what is installed, and what depends on what, as recorded.
type Graph struct {
	world  *world
	market *market
	// Missing are the packages and APIs that are required and that nothing satisfies, sorted; APIs as "apiVersion kind".
	Missing []string
	order   []*Installed
}

// Link is a recorded requirement of an instance.
type Link struct {
	Dependent   Instance
	Requirement Requirement
	// Satisfied means that the satisfier exists, in a version that fits.
	Satisfied bool
}

// NewGraph returns the graph of what is installed.
func NewGraph(installed []Installed) *Graph {
	g := &Graph{world: newWorld(&Input{Installed: installed}, nil), market: newMarket(&Input{})}
	for _, i := range g.world.at {
		g.order = append(g.order, i)
		for k := range i.Requirements {
			if l := g.link(i, &i.Requirements[k]); l.Requirement.Satisfier == nil {
				if name := nameOf(&l.Requirement.Dependency); !slices.Contains(g.Missing, name) {
					g.Missing = append(g.Missing, name)
				}
			}
		}
	}
	slices.SortFunc(g.order, func(a, b *Installed) int { return a.Instance.Compare(b.Instance) })
	slices.Sort(g.Missing)
	return g
}

func nameOf(d *corev1alpha1.Dependency) string {
	switch {
	case d.Package != nil:
		return d.Package.Name
	case d.API != nil:
		return KeyOf(d.API.APIVersion, d.API.Kind)
	}
	return d.Name
}

// link returns a recorded requirement; without a satisfier where that is gone.
func (g *Graph) link(of *Installed, r *Requirement) Link {
	l := Link{Dependent: of.Instance, Requirement: *r}
	if r.Satisfier == nil || g.world.at[*r.Satisfier] == nil {
		l.Requirement.Satisfier = nil
		return l
	}
	v := g.market.values(g.world, g.world.at[*r.Satisfier])[0]
	l.Satisfied = g.market.accepts(rangeOf(&r.Dependency), &v)
	return l
}

// Requires returns the requirements of an instance, by name.
func (g *Graph) Requires(i Instance) []Link {
	var links []Link
	if of := g.world.at[i]; of != nil {
		for _, k := range byName(len(of.Requirements), func(k int) string { return of.Requirements[k].Name }) {
			links = append(links, g.link(of, &of.Requirements[k]))
		}
	}
	return links
}

// RequiredBy returns the requirements that an instance satisfies, or is to satisfy, by dependent and name.
func (g *Graph) RequiredBy(i Instance) []Link {
	var links []Link
	for _, r := range g.world.recorded[i] {
		links = append(links, g.link(r.dependent, r.requirement))
	}
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(a.Dependent.Compare(b.Dependent), cmp.Compare(a.Requirement.Name, b.Requirement.Name))
	})
	return links
}

// Roots returns the instances that no other requires, sorted, and of a cycle that none outside it requires the first.
func (g *Graph) Roots() []Instance {
	var roots []Instance
	reached := map[Instance]bool{}
	for _, i := range g.order {
		if len(g.world.recorded[i.Instance]) == 0 {
			roots = append(roots, i.Instance)
			g.reach(i.Instance, reached)
		}
	}
	for _, i := range g.order {
		if !reached[i.Instance] {
			roots = append(roots, i.Instance)
			g.reach(i.Instance, reached)
		}
	}
	slices.SortFunc(roots, Instance.Compare)
	return roots
}

func (g *Graph) reach(from Instance, reached map[Instance]bool) {
	if reached[from] {
		return
	}
	reached[from] = true
	for _, l := range g.Requires(from) {
		if l.Requirement.Satisfier != nil {
			g.reach(*l.Requirement.Satisfier, reached)
		}
	}
}

// Reached returns what an instance leads to, itself left out, sorted.
func (g *Graph) Reached(from Instance) []Instance {
	reached := map[Instance]bool{}
	g.reach(from, reached)
	var all []Instance
	for i := range reached {
		if i != from {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, Instance.Compare)
	return all
}

// Why returns the paths of requirements that lead to an instance from roots, at most limit of them, the shortest first. A
// path has the requirement of the root first; there is none for what no package requires.
func (g *Graph) Why(i Instance, limit int) [][]Link {
	var paths [][]Link
	queue := [][]Link{nil}
	for len(queue) > 0 && len(paths) < limit {
		path := queue[0]
		queue = queue[1:]
		at := i
		if len(path) > 0 {
			at = path[0].Dependent
		}
		by := slices.DeleteFunc(g.RequiredBy(at), func(l Link) bool {
			return l.Dependent == i || slices.ContainsFunc(path, func(p Link) bool { return p.Dependent == l.Dependent })
		})
		if len(by) == 0 && len(path) > 0 {
			paths = append(paths, path)
		}
		for _, l := range by {
			if len(queue)+len(paths) < limit {
				queue = append(queue, append([]Link{l}, path...))
			}
		}
	}
	return paths
}

// Order returns all instances, dependents before what they depend on: the order of a teardown. Those of a cycle are in the
// order of their names.
func (g *Graph) Order() []Instance {
	var order []Instance
	done := map[Instance]bool{}
	var visit func(i Instance)
	visit = func(i Instance) {
		if done[i] {
			return
		}
		done[i] = true
		for _, l := range slices.Backward(g.Requires(i)) {
			if l.Requirement.Satisfier != nil {
				visit(*l.Requirement.Satisfier)
			}
		}
		order = append(order, i)
	}
	for _, i := range slices.Backward(g.order) {
		visit(i.Instance)
	}
	slices.Reverse(order)
	return order
}

// Cycle returns the instances of a cycle, each followed by one that it depends on; nil where there is none.
func (g *Graph) Cycle() []Instance {
	color := map[Instance]int{} // 1 on the way, 2 done
	var way, cycle []Instance
	var visit func(i Instance) bool
	visit = func(i Instance) bool {
		color[i] = 1
		way = append(way, i)
		for _, l := range g.Requires(i) {
			if to := l.Requirement.Satisfier; to != nil && color[*to] != 2 {
				if color[*to] == 1 {
					cycle = slices.Clone(way[slices.Index(way, *to):])
					return true
				}
				if visit(*to) {
					return true
				}
			}
		}
		way = way[:len(way)-1]
		color[i] = 2
		return false
	}
	for _, i := range g.order {
		if color[i.Instance] == 0 && visit(i.Instance) {
			return cycle
		}
	}
	return nil
}

// Occupied returns the installations of a package that leave no room for one more at an instance, of a version that is
// unique in a scope, or because they are, sorted.
func (g *Graph) Occupied(at Instance, name string, unique corev1alpha1.UniqueScope) []Instance {
	var all []Instance
	for _, o := range g.world.byPackage[name] {
		if o.Instance != at && (clash(at.Namespace, o.Namespace, unique) || clash(at.Namespace, o.Namespace, o.Unique)) {
			all = append(all, o.Instance)
		}
	}
	return all
}
