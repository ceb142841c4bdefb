package resolver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
)

// offer reads "name version: dependency range; other?" with ? for an optional one, "=name" for the package of a handle.
func offer(version string, deps ...string) resolver.Offer {
	return resolver.Offer{Candidate: versions.Candidate{Version: version}, Dependencies: needs(deps...)}
}

// needs reads "handle[?][=package] range".
func needs(texts ...string) (deps []corev1alpha1.Dependency) {
	for _, text := range texts {
		handle, want, _ := strings.Cut(text, " ")
		handle, name, ok := strings.Cut(handle, "=")
		d := corev1alpha1.Dependency{Name: strings.TrimSuffix(handle, "?"), Optional: strings.HasSuffix(handle, "?")}
		if !ok {
			name = d.Name
		}
		d.Package = &corev1alpha1.DependencyPackage{Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: want}}
		deps = append(deps, d)
	}
	return deps
}

func shop(deps ...string) resolver.Root {
	return resolver.Root{Instance: resolver.Instance{Namespace: "team", Name: "shop"}, Package: "shop", Version: "1.0.0", Dependencies: needs(deps...)}
}

func printed(plan resolver.Plan) string {
	var b strings.Builder
	for _, s := range plan.Steps {
		verb := "change"
		if s.Create {
			verb = "create"
		}
		fmt.Fprintf(&b, "%s %s: %s %s, after %v: %s\n", verb, s.Instance, s.Package, s.Version, s.After, s.Message)
	}
	for _, r := range plan.Results {
		fmt.Fprintf(&b, "%s: %s %s\n", r.Instance, r.Reason, r.Message)
		for _, o := range r.Outcomes {
			fmt.Fprintf(&b, "  %s %v %s: %s\n", o.Dependency.Name, o.Satisfied, o.Reason, o.Message)
		}
	}
	return b.String()
}

func TestSketch(t *testing.T) {
	t.Parallel()
	in := resolver.Input{
		Roots: []resolver.Root{shop("db >=1", "orm")},
		Catalogue: resolver.Offers{
			"db": {offer("1.0.0"), offer("2.0.0"), offer("3.0.0")}, "orm": {offer("1.0.0", "db <3"), offer("2.0.0", "db <3", "log?"), offer("3.0.0", "db <1")},
			"log": {offer("1.0.0")},
		},
	}
	t.Log("\n" + printed(resolver.Solve(in)))
	in.Roots = []resolver.Root{shop("db >=3", "orm", "ghost", "zoo >7")}
	t.Log("\n" + printed(resolver.Solve(in)))
	in.Catalogue = resolver.Offers{"db": {offer("1.0.0", "orm")}, "orm": {offer("1.0.0", "zzz")}, "zzz": {offer("1.0.0", "db")}}
	in.Roots = []resolver.Root{shop("db >=1")}
	t.Log("\n" + printed(resolver.Solve(in)))
}

// pigeons are n packages of which each needs one of n-1 holes for itself.
func pigeons(n int) resolver.Input {
	in := resolver.Input{Roots: []resolver.Root{shop()}}
	offers := resolver.Offers{}
	for p := range n {
		name := fmt.Sprintf("pigeon%d", p)
		in.Roots[0].Dependencies = append(in.Roots[0].Dependencies, needs(name)...)
		for h := range n - 1 {
			offers[name] = append(offers[name], offer(fmt.Sprintf("%d.0.0", h), fmt.Sprintf("hole%d =%d.0.0", h, p)))
			offers[fmt.Sprintf("hole%d", h)] = append(offers[fmt.Sprintf("hole%d", h)], offer(fmt.Sprintf("%d.0.0", p)))
		}
	}
	in.Catalogue = offers
	return in
}

func TestPigeonhole(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5, 7, 12, 25} {
		begin := time.Now()
		plan := resolver.Solve(pigeons(n))
		t.Logf("%d pigeons, %s: %s", n, time.Since(begin), printed(plan))
	}
}
