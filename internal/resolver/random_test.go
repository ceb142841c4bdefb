package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// generator draws catalogues.
type generator struct {
	*rand.Rand
	names  []string // packages that others depend on
	spaces []string
	// density is the density of dependencies, rarity how rare unique packages and cycles are.
	density, rarity int
}

// random returns a catalogue of a few packages with a few versions each, some of them installed,
// and a root. Half of the catalogues have one namespace; the others also have ClusterPackages and
// unique packages. Some installed packages are unrelated to all roots.
func random(seed uint64) resolver.Input {
	r := rand.New(rand.NewPCG(seed, 7))
	g := generator{r, []string{"a", "b", "c", "d", "e", "f"}[:2+r.IntN(5)], []string{"team"}, 1 + r.IntN(3), 3 + r.IntN(16)}
	if seed%2 == 0 {
		g.spaces = []string{"", "other", "team"}
	}

	packages := append([]string{"x", "y"}[:r.IntN(3)], g.names...)
	offers := resolver.Offers{}
	for _, n := range packages {
		for v := range r.IntN(5) {
			offers[n] = append(offers[n], g.offer(fmt.Sprintf("%d.0.0", v+1), n))
		}
	}

	in := resolver.Input{Roots: []resolver.Root{shop(g.texts("shop")...)}, Catalogue: offers}
	if len(g.spaces) > 1 && r.IntN(4) == 0 {
		in.Roots[0].Namespace = ""
	}

	in.Installed = g.installed(packages)
	if r.IntN(4) == 0 {
		was := at(in.Roots[0].Namespace, "shop", "shop", "0.9.0")
		was.Requirements = g.recorded(in.Installed, &was, in.Roots[0].Dependencies)
		in.Installed = append(in.Installed, was)
	}

	return in
}

// texts returns the dependencies of a package in the syntax of needs.
func (g *generator) texts(self string) (out []string) {
	for _, n := range g.names {
		isNeighbour := self == "x" || self == "y"
		if (g.IntN(len(g.names)+1) < g.density || isNeighbour && g.IntN(2) == 0) && (n != self || g.IntN(30) == 0) {
			optional := ""
			if g.IntN(5) == 0 {
				optional = "?"
			}
			want := []string{"", ">=2.0.0", "<2.0.0", "=1.0.0", ">=1.0.0, <3.0.0", "=3.0.0", "!=2.0.0", "=4.0.0"}[min(g.IntN(9), 7)]
			out = append(out, string(rune('p'+g.IntN(6)))+n+optional+"="+n+" "+want)
		}
	}
	return out
}

func (g *generator) offer(version, name string) resolver.Offer {
	o := offer(version, g.texts(name)...)
	if len(g.spaces) > 1 {
		o.Unique = []corev1alpha1.UniqueScope{corev1alpha1.UniqueScopeCluster, corev1alpha1.UniqueScopeNamespace, ""}[min(g.IntN(g.rarity), 2)]
		o.Scopes = [][]corev1alpha1.Scope{{corev1alpha1.ScopeCluster}, {corev1alpha1.ScopeNamespaced}, nil}[min(g.IntN(g.rarity), 2)]
	}
	return o
}

// installed returns installed packages. Most depend on those after them, and a few on others.
func (g *generator) installed(packages []string) (all []resolver.Installed) {
	for _, n := range packages {
		for _, namespace := range g.spaces {
			if g.IntN(2+len(g.spaces)) > 0 {
				continue
			}
			i := at(namespace, string(rune('a'+g.IntN(26)))+n, n, fmt.Sprintf("%d.0.0", 1+min(g.IntN(3), g.IntN(3))))
			if i.Changeable = g.IntN(3) > 0; len(g.spaces) > 1 {
				i.Unique = []corev1alpha1.UniqueScope{corev1alpha1.UniqueScopeCluster, corev1alpha1.UniqueScopeNamespace, ""}[min(g.IntN(g.rarity), 2)]
				i.Deleting, i.AllDependents = g.IntN(20) == 0, g.IntN(3) == 0
			}
			all = append(all, i)
		}
	}

	for k := range all {
		to := all[k+1:]
		if g.IntN(g.rarity) == 0 {
			to = all
		}
		all[k].Requirements = g.recorded(to, &all[k], needs(g.texts(all[k].Package)...))
	}

	return all
}

// recorded returns requirements, each with an instance that can satisfy it, or that satisfied it
// for an earlier manager: a package of another namespace that is unique in the cluster.
func (g *generator) recorded(installed []resolver.Installed, of *resolver.Installed, deps []corev1alpha1.Dependency) (all []resolver.Requirement) {
	for _, d := range deps {
		var to []*resolver.Instance
		for i := range installed {
			o := &installed[i]
			isVisible := o.Namespace == of.Namespace || o.Namespace == "" || o.Unique == corev1alpha1.UniqueScopeCluster
			if o.Package == d.Package.Name && isVisible && o.Instance != of.Instance {
				to = append(to, &o.Instance)
			}
		}
		if len(to) > 0 {
			all = append(all, resolver.Requirement{Dependency: d, Satisfier: to[g.IntN(len(to))]})
		}
	}

	return all
}

// shuffled changes the order of everything.
func shuffled(in resolver.Input, seed uint64) resolver.Input {
	r := rand.New(rand.NewPCG(seed, 8))
	deps := func(all []corev1alpha1.Dependency) []corev1alpha1.Dependency {
		all = slices.Clone(all)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all
	}

	out := in
	out.Roots = slices.Clone(in.Roots)
	r.Shuffle(len(out.Roots), func(i, j int) { out.Roots[i], out.Roots[j] = out.Roots[j], out.Roots[i] })
	for i := range out.Roots {
		out.Roots[i].Dependencies = deps(out.Roots[i].Dependencies)
	}

	out.Installed = slices.Clone(in.Installed)
	for i := range out.Installed {
		reqs := slices.Clone(out.Installed[i].Requirements)
		r.Shuffle(len(reqs), func(a, b int) { reqs[a], reqs[b] = reqs[b], reqs[a] })
		out.Installed[i].Requirements = reqs
	}

	r.Shuffle(len(out.Installed), func(i, j int) { out.Installed[i], out.Installed[j] = out.Installed[j], out.Installed[i] })
	offers := resolver.Offers{}
	for name, all := range in.Catalogue.(resolver.Offers) {
		all = slices.Clone(all)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i := range all {
			all[i].Dependencies = deps(all[i].Dependencies)
		}
		offers[name] = all
	}

	out.Catalogue = offers
	return out
}

func described(in resolver.Input) string {
	text := ""
	list := func(deps []corev1alpha1.Dependency) (out string) {
		for _, d := range deps {
			out += fmt.Sprintf(" [%s %s %q optional=%v]", d.Name, d.Package.Name, d.Package.Version, d.Optional)
		}
		return out
	}

	for _, r := range in.Roots {
		text += fmt.Sprintf("root %s%s\n", r.Instance, list(r.Dependencies))
	}

	for _, i := range in.Installed {
		text += fmt.Sprintf("installed %s: %s %s changeable=%v all=%v unique=%q deleting=%v", i.Instance, i.Package, i.Version, i.Changeable, i.AllDependents, i.Unique, i.Deleting)
		for _, r := range i.Requirements {
			text += list([]corev1alpha1.Dependency{r.Dependency}) + " by " + r.Satisfier.String()
		}
		text += "\n"
	}

	for name, all := range in.Catalogue.(resolver.Offers) {
		for _, v := range all {
			text += fmt.Sprintf("offer %s %s unique=%q %v%s\n", name, v.Version, v.Unique, v.Scopes, list(v.Dependencies))
		}
	}

	return text
}
