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

// samples is how many random catalogues are tried.
func samples(t *testing.T) uint64 {
	n := uint64(2500)
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		n = 100_000
	}
	if text := os.Getenv("LOCKSTEP_SEED"); text != "" {
		if _, err := strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// random returns a catalogue of a few packages with a few versions, some of which are installed, and a root.
func random(seed uint64) resolver.Input {
	r := rand.New(rand.NewPCG(seed, 7))
	names := []string{"a", "b", "c", "d", "e", "f"}[:2+r.IntN(5)]
	density := 1 + r.IntN(3)
	texts := func(self string) (out []string) {
		for _, n := range names {
			if r.IntN(len(names)+1) < density && (n != self || r.IntN(30) == 0) {
				optional := ""
				if r.IntN(5) == 0 {
					optional = "?"
				}
				want := []string{"", ">=2.0.0", "<2.0.0", "=1.0.0", ">=1.0.0, <3.0.0", "=3.0.0", "!=2.0.0", "=4.0.0"}[min(r.IntN(9), 7)]
				out = append(out, string(rune('p'+r.IntN(6)))+n+optional+"="+n+" "+want)
			}
		}
		return out
	}
	offers := resolver.Offers{}
	for _, n := range names {
		for v := range r.IntN(4) {
			offers[n] = append(offers[n], offer(fmt.Sprintf("%d.0.0", v+1), texts(n)...))
		}
	}
	in := resolver.Input{Roots: []resolver.Root{shop(texts("shop")...)}, Catalogue: offers}
	at := map[string]*resolver.Instance{}
	for _, n := range names {
		if r.IntN(3) == 0 {
			at[n] = &resolver.Instance{Namespace: "team", Name: string(rune('a'+r.IntN(26))) + n}
		}
	}
	for k, n := range names {
		if at[n] == nil {
			continue
		}
		i := resolver.Installed{Instance: *at[n], Package: n, Version: fmt.Sprintf("%d.0.0", 1+r.IntN(3)), Changeable: r.IntN(3) > 0, Available: true}
		for _, d := range needs(texts(n)...) {
			if on := d.Package.Name; slices.Index(names, on) > k && at[on] != nil {
				i.Requirements = append(i.Requirements, resolver.Requirement{Dependency: d, Satisfier: at[on]})
			}
		}
		in.Installed = append(in.Installed, i)
	}
	return in
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

// TestRandomCatalogues compares with trying everything in the stated order, and with a SAT solver, and changes the order of
// the input.
func TestRandomCatalogues(t *testing.T) {
	t.Parallel()
	first := uint64(0)
	if text := os.Getenv("LOCKSTEP_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
	}
	solutions := 0
	for seed := first; seed < first+samples(t) && !t.Failed(); seed++ {
		in := random(seed)
		plan := resolver.Solve(in)
		got, want := solutionOf(plan), "none"
		o := newOracle(in)
		if o.solve() {
			want = o.solution()
			solutions++
		}
		if got != want {
			t.Errorf("seed %d: got\n%s\nwant\n%s\n%s\n%s", seed, got, want, described(in), printed(plan))
		}
		if sat := satisfiable(in); sat != (got != "none") {
			t.Errorf("seed %d: the SAT solver says %v, got\n%s\n%s", seed, sat, got, described(in))
		}
		if seed%4 == 0 {
			other := resolver.Solve(shuffled(in, seed))
			if diff := gocmp.Diff(sortedOutcomes(plan), sortedOutcomes(other)); diff != "" {
				t.Errorf("seed %d: another order of the input: %s\n%s", seed, diff, described(in))
			}
		}
	}
	t.Logf("%d catalogues, %d with a solution", samples(t), solutions)
}

// sortedOutcomes orders outcomes, which follow the order of the dependencies of their root.
func sortedOutcomes(plan resolver.Plan) resolver.Plan {
	for i := range plan.Results {
		slices.SortFunc(plan.Results[i].Outcomes, func(a, b resolver.Outcome) int { return cmp.Compare(a.Dependency.Name, b.Dependency.Name) })
	}
	return plan
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
		text += "root" + list(r.Dependencies) + "\n"
	}
	for _, i := range in.Installed {
		text += fmt.Sprintf("installed %s %s %s changeable=%v", i.Name, i.Package, i.Version, i.Changeable)
		for _, r := range i.Requirements {
			text += list([]corev1alpha1.Dependency{r.Dependency})
		}
		text += "\n"
	}
	for name, all := range in.Catalogue.(resolver.Offers) {
		for _, v := range all {
			text += fmt.Sprintf("offer %s %s%s\n", name, v.Version, list(v.Dependencies))
		}
	}
	return text
}

// TestRandomRoots resolves several roots at once: in every order the same, and those that fail take no steps.
func TestRandomRoots(t *testing.T) {
	t.Parallel()
	failed, ready := 0, 0
	for seed := range samples(t) / 4 {
		in := random(seed)
		for k, name := range []string{"app", "web"} {
			other := random(seed + uint64(k+1)<<32).Roots[0]
			other.Instance, other.Package = team(name), name
			in.Roots = append(in.Roots, other)
		}
		plan := resolver.Solve(in)
		if diff := gocmp.Diff(sortedOutcomes(plan), sortedOutcomes(resolver.Solve(shuffled(in, seed)))); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, diff, described(in))
		}
		for _, r := range plan.Results {
			fails := slices.ContainsFunc(r.Outcomes, func(o resolver.Outcome) bool { return o.Failed && !o.Dependency.Optional })
			if !fails {
				ready++
				continue
			}
			failed++
			for _, s := range plan.Steps {
				if slices.ContainsFunc(s.Needs, func(n resolver.Need) bool { return n.Dependent == r.Instance }) {
					t.Fatalf("seed %d: %s fails, and there is a step for it: %+v\n%s", seed, r.Instance, s, described(in))
				}
			}
		}
	}
	if failed == 0 || ready == 0 {
		t.Errorf("%d roots fail, %d do not", failed, ready)
	}
}
