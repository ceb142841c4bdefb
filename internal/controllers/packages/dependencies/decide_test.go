package dependencies

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
	"lockstep.run/lockstep/test/require"
)

// offered is a catalogue by names of packages.
type offered map[string][]resolver.Offer

func (o offered) Offers(_, name string) []resolver.Offer { return o[name] }

func (o offered) Providers(string, corev1alpha1.ProvidedAPI) []string { return nil }

func offer(version string, requires ...corev1alpha1.Dependency) resolver.Offer {
	return resolver.Offer{Candidate: versions.Candidate{Version: version}, Dependencies: requires}
}

func named(name, follows, version string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := newPackage(change...)
	pkg.Name = name
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: follows, VersionSelection: corev1alpha1.VersionSelection{Version: version}}
	return pkg
}

// A decision depends only on its input: the same input gives the same decision. It does not write.
func TestDecide(t *testing.T) {
	t.Parallel()
	catalogue := offered{
		"db.example.com":   {offer("1.0.0"), offer("2.0.0")},
		"blog.example.com": {offer("1.0.0", dependencyOn("db", "<2"))},
	}
	shop := named("shop", "shop.example.com", "1.0.0")
	installed := func(version string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
		return named("shop-db", "db.example.com", version, func(pkg *corev1alpha1.Package) {
			pkg.Labels = map[string]string{corev1alpha1.GeneratedLabel: "true"}
			for _, c := range change {
				c(pkg)
			}
		})
	}
	blog := named("blog", "blog.example.com", "1.0.0")
	for name, tc := range map[string]struct {
		requires string
		packages []*corev1alpha1.Package
		of       *corev1alpha1.Package
		want     string
	}{
		"nothing is installed": {">=1", nil, shop, "create Package team/shop-db 2.0.0; db waits"},
		"nothing fits":         {">=3", nil, shop, "db fails"},
		"it is installed":      {">=1", []*corev1alpha1.Package{installed("2.0.0")}, shop, "db waits"},
		"another version":      {">=2", []*corev1alpha1.Package{installed("1.0.0")}, shop, "change Package team/shop-db 2.0.0; db waits"},
		"together with open ones": {
			">=1", []*corev1alpha1.Package{blog}, shop, "create Package team/blog-db 1.0.0; db waits",
		},
		"in another cluster": {">=1", []*corev1alpha1.Package{installed("2.0.0")}, named("shop", "shop.example.com", "1.0.0", func(pkg *corev1alpha1.Package) {
			pkg.Spec.TargetRef = &corev1alpha1.TargetReference{}
		}), "db fails"},
	} {
		packages := map[resolver.Instance]corev1alpha1.GenericPackage{snapshot.InstanceOf(tc.of): tc.of}
		for _, pkg := range tc.packages {
			packages[snapshot.InstanceOf(pkg)] = pkg
		}
		in := Input{
			Package: tc.of, Root: RootOf(tc.of, []corev1alpha1.Dependency{dependencyOn("db", tc.requires)}), Known: NewKnown(packages),
			Catalogue: catalogue, TakesPart: TakesPart, WasAvailable: func(resolver.Instance) bool { return true },
			Versions: func(pkg corev1alpha1.GenericPackage) (bool, []resolver.RootVersion, error) {
				var all []resolver.RootVersion
				for _, o := range catalogue[pkg.PackageSpec().PackageRef.Name] {
					all = append(all, resolver.RootVersion{Version: o.Version, Dependencies: o.Dependencies})
				}
				return false, all, nil
			},
		}
		for range 2 {
			plan, err := Decide(in)
			require.NoError(t, err)
			if got := planText(plan); got != tc.want {
				t.Errorf("%s: %s, want %s", name, got, tc.want)
			}
		}
	}
}

func planText(plan *Plan) string {
	var texts []string
	for _, step := range plan.Steps {
		verb := "change"
		if step.Create {
			verb = "create"
		}
		texts = append(texts, fmt.Sprintf("%s %s %s", verb, step.Instance, step.Version))
	}
	for _, o := range plan.Result.Outcomes {
		state := "waits"
		if o.Satisfied {
			state = "is satisfied"
		} else if o.Failed {
			state = "fails"
		}
		texts = append(texts, o.Dependency.Name+" "+state)
	}
	return strings.Join(texts, "; ")
}
