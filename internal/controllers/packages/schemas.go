package packages

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// schemas are answers of resolver.Served in one reconcile. Whether an API has fields is read from the API server, once; nobody waits
// for that.
type schemas struct {
	read  resolver.Served
	known map[string]answer
}

type answer struct {
	served bool
	fields []string
}

// served is a resolver.Served.
func (a *schemas) served(api *corev1alpha1.DependencyAPI) (bool, []string) {
	if len(api.FieldPaths) == 0 {
		return a.read(api)
	}
	key := resolver.KeyOf(api.APIVersion, api.Kind) + " " + strings.Join(api.FieldPaths, " ")
	if _, known := a.known[key]; !known {
		if a.known == nil {
			a.known = map[string]answer{}
		}
		served, fields := a.read(api)
		a.known[key] = answer{served, fields}
	}
	return a.known[key].served, a.known[key].fields
}
