package dependencies

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// Once remembers the answers of read. Whether an API has some fields is read from the API server,
// once in a reconcile; whether an API is served needs no request.
func Once(read resolver.Served) resolver.Served {
	type answer struct {
		served  bool
		missing []string
	}

	known := map[string]answer{}
	return func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		if len(api.FieldPaths) == 0 {
			return read(api)
		}
		key := resolver.KeyOf(api.APIVersion, api.Kind) + " " + strings.Join(api.FieldPaths, " ")
		if _, found := known[key]; !found {
			served, missing := read(api)
			known[key] = answer{served, missing}
		}
		return known[key].served, known[key].missing
	}
}
