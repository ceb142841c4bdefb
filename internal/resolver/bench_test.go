package resolver_test

import (
	"fmt"

	"lockstep.run/lockstep/internal/resolver"
)

// wide returns a package of many versions with dependencies each, in a namespace where an instance
// can be changed. The root also has dependencies that no version satisfies. For each explanation,
// the resolver has to search all versions for the packages that the root can lead to.
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
