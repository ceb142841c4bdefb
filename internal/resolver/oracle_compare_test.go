package resolver_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// samples returns the number of the first random catalogue, and how many to try.
func samples(t *testing.T) (first, n uint64) {
	t.Helper()
	n = 1500
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		n = 100_000
	}
	if text := os.Getenv("LOCKSTEP_SEED"); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return first, n
}

// TestRandomCatalogues compares the resolver with an oracle that tries everything in the documented
// order, also with shuffled input.
func TestRandomCatalogues(t *testing.T) {
	t.Parallel()
	first, n := samples(t)
	solutions := 0
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		in := random(seed)
		plan := compare(t, seed, in)
		if !fails(plan.Results[0]) {
			solutions++
		}
	}
	t.Logf("%d catalogues, %d with a solution", n, solutions)
}

// compare resolves an input in two orders, and compares the plan with the oracle's.
func compare(t *testing.T, seed uint64, in resolver.Input) resolver.Plan {
	t.Helper()
	plan := resolver.Solve(in)
	if got, want := solutionOf(plan), best(in); got != want {
		t.Errorf("seed %d: got\n%s\nwant\n%s\n%s\n%s", seed, got, want, described(in), printed(plan))
	}
	if diff := gocmp.Diff(sortedOutcomes(plan), sortedOutcomes(resolver.Solve(shuffled(in, seed)))); diff != "" {
		t.Errorf("seed %d: another order of the input: %s\n%s", seed, diff, described(in))
	}
	return plan
}

// sortedOutcomes sorts outcomes by name. They follow the order of the root's dependencies, which
// the shuffling changes.
func sortedOutcomes(plan resolver.Plan) resolver.Plan {
	for i := range plan.Results {
		slices.SortFunc(plan.Results[i].Outcomes, func(a, b resolver.Outcome) int { return cmp.Compare(a.Dependency.Name, b.Dependency.Name) })
	}
	return plan
}

// TestRandomRoots resolves several roots at once, also in several namespaces. The documented roots
// fail, and no package is changed for them.
func TestRandomRoots(t *testing.T) {
	t.Parallel()
	failed, ready := 0, 0
	first, n := samples(t)
	for seed := first; seed < first+n/4 && !t.Failed(); seed++ {
		in := random(seed)
		for k, name := range []string{"app", "web"} {
			other := random(seed + uint64(k+1)<<32).Roots[0]
			other.Name, other.Package = name, name
			in.Roots = append(in.Roots, other)
		}
		plan := compare(t, seed, in)
		for _, r := range plan.Results {
			if !fails(r) {
				ready++
				continue
			}
			failed++
			for _, s := range plan.Steps {
				isFor := slices.ContainsFunc(s.Needs, func(n resolver.Need) bool { return n.Dependent == r.Instance })
				if isFor && s.Create || s.Needs[0].Dependent == r.Instance { // a change heeds the requirements that are recorded on it
					t.Errorf("seed %d: %s fails, and there is a step for it: %+v\n%s", seed, r.Instance, s, described(in))
				}
			}
		}
	}

	if failed == 0 || ready == 0 {
		t.Errorf("%d roots fail, %d do not", failed, ready)
	}
}

// TestRandomRootVersions also resolves the versions of roots: each gets the highest version that
// has a solution.
func TestRandomRootVersions(t *testing.T) {
	t.Parallel()
	lower := 0
	first, n := samples(t)
	for seed := first; seed < first+n/4 && !t.Failed(); seed++ {
		in := random(seed)
		for k, name := range []string{"", "app", "web"}[:1+seed%3] {
			if k > 0 {
				in.Roots = append(in.Roots, random(seed + uint64(k+1)<<32).Roots[0])
				in.Roots[k].Name, in.Roots[k].Package = name, name
			}
			root := &in.Roots[k]
			for v := range 1 + seed%4 {
				of := random(seed + uint64(k+1)<<32 + (v+1)<<40).Roots[0]
				root.Versions = append(root.Versions, resolver.RootVersion{Version: strconv.Itoa(9-int(v)) + ".0.0", Dependencies: of.Dependencies})
			}
		}
		for _, r := range compare(t, seed, in).Results {
			if !fails(r) && r.Version != "9.0.0" {
				lower++
			}
		}
	}

	if lower == 0 {
		t.Error("no root has a lower version")
	}
}

// TestRandomTentative installs some of the packages that would be created, in any version and with
// any requirements. The solution stays the same, and takes their place.
func TestRandomTentative(t *testing.T) {
	t.Parallel()
	taken := 0
	first, n := samples(t)
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		in := random(seed)
		want := resolver.Solve(in)
		r := rand.New(rand.NewPCG(seed, 9))
		var tentative []resolver.Installed
		for _, step := range want.Steps {
			if step.Create && r.IntN(2) == 0 {
				i := at(step.Namespace, step.Name, step.Package, strconv.Itoa(1+r.IntN(5))+".0.0")
				i.Generated, i.Changeable, i.Tentative = true, true, true
				for _, d := range needs("a=a >=1.0.0", "b=b <2.0.0") {
					to := want.Steps[r.IntN(len(want.Steps))].Instance
					i.Requirements = append(i.Requirements, resolver.Requirement{Dependency: d, Satisfier: &to})
				}
				tentative = append(tentative, i)
			}
		}
		with := in
		with.Installed = slices.Concat(in.Installed, tentative)
		plan := resolver.Solve(with)
		if got, want := solutionOf(plan, tentative...), solutionOf(want); got != want {
			t.Errorf("seed %d: got\n%s\nwant\n%s\n%s", seed, got, want, described(with))
		}
		for _, step := range plan.Steps {
			if slices.ContainsFunc(tentative, func(i resolver.Installed) bool {
				return i.Instance == step.Instance && i.Version == step.From && !step.Create
			}) {
				taken++
			}
		}
	}

	if taken == 0 {
		t.Error("no tentative choice is taken")
	}
}

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
