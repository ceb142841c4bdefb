package resolver

import (
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Offers is a Catalogue that shows everything to every namespace.
type Offers map[string][]Offer

// Offers returns the versions of a package.
func (o Offers) Offers(_, name string) []Offer { return o[name] }

// Providers returns the names of packages with a version that provides an API.
func (o Offers) Providers(_ string, api corev1alpha1.ProvidedAPI) []string {
	var names []string
	for name, all := range o {
		if slices.ContainsFunc(all, func(v Offer) bool { return slices.Contains(v.Provides, api) }) {
			names = append(names, name)
		}
	}
	return names
}
