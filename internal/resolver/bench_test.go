package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

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

func BenchmarkPigeonhole(b *testing.B) {
	in := pigeons(20)
	b.ReportAllocs()
	for b.Loop() {
		resolver.Solve(in)
	}
}
