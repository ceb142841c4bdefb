package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

// large is a catalogue of packages, each with versions that depend on some of the later packages, in ranges.
func large(packages, each, deps int) resolver.Input {
	random := rand.New(rand.NewPCG(1, 2))
	offers := resolver.Offers{}
	for p := range packages {
		for v := range each {
			var texts []string
			for range deps {
				if to := p + 1 + random.IntN(40); to < packages {
					low := random.IntN(each / 2)
					texts = append(texts, fmt.Sprintf("p%d >=1.%d.0, <1.%d.0", to, low, low+each/2+random.IntN(each/2)))
				}
			}
			if p+1 < packages { // all of them are reached
				texts = append(texts, fmt.Sprintf("next=p%d >=1.0.0", p+1))
			}
			offers[fmt.Sprintf("p%d", p)] = append(offers[fmt.Sprintf("p%d", p)], offer(fmt.Sprintf("1.%d.0", v), distinct(texts)...))
		}
	}
	return resolver.Input{Catalogue: offers, Roots: []resolver.Root{shop("p0")}}
}

// distinct leaves out dependencies on a package that is there already.
func distinct(texts []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, text := range texts {
		name := needs(text)[0].Package.Name
		if !seen[name] {
			seen[name] = true
			out = append(out, text)
		}
	}
	return out
}

func BenchmarkSolve(b *testing.B) {
	for _, packages := range []int{10, 100, 1000} {
		in := large(packages, 20, 4)
		in.Steps = limits.ResolutionSteps
		b.Run(fmt.Sprintf("packages=%d", packages), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if plan := resolver.Solve(in); len(plan.Steps) < packages {
					b.Fatalf("%d steps: %+v", len(plan.Steps), plan.Results)
				}
			}
		})
	}
}

// wide is a package of many versions, each with dependencies, beside dependencies of the root that nothing satisfies, in a namespace
// where something may be changed: what the root may lead to is looked for in all of them, for each explanation.
func wide(versions, deps int) resolver.Input {
	offers := resolver.Offers{}
	var missing []string
	for d := range deps {
		missing = append(missing, fmt.Sprintf("d%d >=1", d))
		offers[fmt.Sprintf("d%d", d)] = []resolver.Offer{offer("1.1.0")}
	}
	for v := range versions {
		offers["wide"] = append(offers["wide"], offer(fmt.Sprintf("1.%d.0", v), missing...))
	}
	root := shop("wide")
	for k := range 40 {
		name := fmt.Sprintf("ghost%d", k)
		offers[name] = []resolver.Offer{offer("1.0.0")}
		root.Dependencies = append(root.Dependencies, needs(name+" >=2")...)
	}
	return resolver.Input{Catalogue: offers, Roots: []resolver.Root{root}, Installed: []resolver.Installed{at("team", "mine", "mine", "1.0.0", changeable)}}
}

// A repository of 260 KB has 10,000 versions with 20 dependencies each.
func BenchmarkWide(b *testing.B) {
	for _, versions := range []int{1_000, 10_000, 100_000} {
		in := wide(versions, 20)
		b.Run(fmt.Sprintf("versions=%d", versions), func(b *testing.B) {
			for b.Loop() {
				if plan := resolver.Solve(in); plan.Results[0].Ready {
					b.Fatal(printed(plan))
				}
			}
		})
	}
}

func BenchmarkPigeonhole(b *testing.B) {
	in := pigeons(20)
	b.ReportAllocs()
	for b.Loop() {
		resolver.Solve(in)
	}
}
