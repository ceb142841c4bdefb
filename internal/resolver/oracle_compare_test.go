package resolver_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

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
