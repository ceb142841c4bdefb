package resolver_test

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
)

var certificate = corev1alpha1.ProvidedAPI{APIVersion: "certs.example.com/v1", Kind: "Certificate"}

func provider(version string, deps ...string) resolver.Offer {
	return resolver.Offer{Candidate: versions.Candidate{Version: version, Provides: []corev1alpha1.ProvidedAPI{certificate}}, Dependencies: needs(deps...)}
}

func provides(i *resolver.Installed) { i.Provides = []corev1alpha1.ProvidedAPI{certificate} }

// A package that was installed for an API changes only to versions that provide the API.
func TestChangesKeepTheAPI(t *testing.T) {
	t.Parallel()
	catalogue := resolver.Offers{"pki": {provider("1.0.0"), offer("2.0.0"), provider("2.1.0")}}
	byAPI := func(i *resolver.Installed) { i.API = &certificate }
	for want, change := range map[string]func(*resolver.Installed){"2.0.0": func(*resolver.Installed) {}, "2.1.0": byAPI} {
		plan := resolver.Solve(resolver.Input{
			Roots: []resolver.Root{shop("pki >=2")}, Catalogue: catalogue, Installed: []resolver.Installed{at("team", "pki", "pki", "1.0.0", changeable, change)},
		})
		if got := printed(plan); !strings.Contains(got, "pki "+want) {
			t.Errorf("%s: %s", want, got)
		}
	}
}

func TestAPIs(t *testing.T) {
	t.Parallel()
	served := func(missing ...string) resolver.Served {
		return func(*corev1alpha1.DependencyAPI) (bool, []string) { return true, missing }
	}
	two := resolver.Offers{"certs": {provider("1.0.0")}, "pki": {provider("1.0.0")}}
	cases := []struct {
		reason    string
		also      []string // dependencies in addition to the one on the API
		catalogue resolver.Offers
		installed []resolver.Installed
		served    resolver.Served
		want, not string
	}{
		{"served", nil, two, nil, served(), "api true ApiServed: The cluster serves it.", "create"},
		{"served without fields", nil, two, nil, served("spec.key"), "FieldsMissing: certs.example.com/v1 Certificate is served without spec.key.", "create"},
		{"one package provides it", nil, resolver.Offers{"certs": {provider("1.0.0"), provider("2.0.0"), offer("3.0.0")}}, nil, nil, "create Package team/shop-api: certs 2.0.0", ""},
		{"several do", nil, two, nil, nil, "AmbiguousProvider: The packages certs and pki provide certs.example.com/v1 Certificate. Name one in spec.dependencies.overrides", "create"},
		{"several do, one of them is required anyway", []string{"pki"}, two, nil, nil, "create Package team/shop-api: pki 1.0.0", "certs 1.0.0"},
		{"several do, one of them is installed", nil, two, []resolver.Installed{at("team", "pki", "pki", "1.0.0", provides)}, nil, "api true AlreadyInstalled: It is installed as Package team/pki.", "create"},
		{"served by a package of the namespace", nil, two, []resolver.Installed{at("team", "pki", "pki", "1.0.0", provides)}, served(), "by Package team/pki", "create"},
		{"served by a ClusterPackage without a recorded owner", nil, two, []resolver.Installed{at("", "pki", "pki", "1.0.0", provides)}, served(), "api true ApiServed: The cluster serves it.", "ClusterPackage"},
		{"unless that heeds all", nil, two, []resolver.Installed{at("", "pki", "pki", "1.0.0", provides, heedful)}, served(), "by ClusterPackage pki", "create"},
		{"provided by a package of another namespace", nil, nil, []resolver.Installed{at("other", "pki", "pki", "1.0.0", provides, unique)}, nil, "UnknownPackage", "other"},
		{"none does", nil, nil, nil, nil, "UnknownPackage: The cluster does not serve certs.example.com/v1 Certificate, and no installed or offered package", "create"},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			root := shop(c.also...)
			root.Dependencies = append(root.Dependencies, corev1alpha1.Dependency{Name: "api", API: &corev1alpha1.DependencyAPI{APIVersion: certificate.APIVersion, Kind: certificate.Kind}})
			plan := resolver.Solve(resolver.Input{Roots: []resolver.Root{root}, Catalogue: c.catalogue, Installed: c.installed, Served: c.served})
			got := printed(plan)
			if by := plan.Results[0].Outcomes[len(c.also)].Satisfier; by != nil {
				got += " by " + by.String()
			}
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Error(got)
			}
		})
	}
}

// TestUnloaded checks that a package that is not loaded yet has the requirements of its offer.
func TestUnloaded(t *testing.T) {
	t.Parallel()
	unloaded := func(i *resolver.Installed) { i.Unloaded, i.Available = true, false }
	got := printed(resolver.Solve(resolver.Input{
		Roots: []resolver.Root{shop("orm")}, Catalogue: offers("db", resolver.Offers{"orm": {offer("1.0.0", "db <3")}}),
		Installed: []resolver.Installed{at("team", "shop-orm", "orm", "1.0.0", changeable, unloaded)},
	}))
	if !strings.Contains(got, "create Package team/shop-orm-db: db 2.0.0") || strings.Contains(got, "change") {
		t.Error(got)
	}
}
