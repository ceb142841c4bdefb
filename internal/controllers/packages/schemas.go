package packages

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// schemas are answers of resolver.Served in one reconcile. Whether an API has fields is read from the API server, which must
// not happen while others wait for the resolution: it is put off where it is not known yet.
type schemas struct {
	read    resolver.Served
	missing map[string]answer
	unread  []*corev1alpha1.DependencyAPI
}

type answer struct {
	served bool
	fields []string
}

// served is a resolver.Served that reads nothing. What it has to put off is in unread, and the plan is void.
func (a *schemas) served(api *corev1alpha1.DependencyAPI) (bool, []string) {
	if len(api.FieldPaths) == 0 {
		return a.read(api)
	}
	known, ok := a.missing[fieldsOf(api)]
	if !ok {
		a.unread = append(a.unread, api)
	}
	return known.served, known.fields
}

// know reads what dependencies are on.
func (a *schemas) know(required []corev1alpha1.Dependency) {
	for i := range required {
		if api := required[i].API; api != nil && len(api.FieldPaths) > 0 {
			a.unread = append(a.unread, api)
		}
	}
	a.readAll()
}

func (a *schemas) readAll() {
	if a.missing == nil {
		a.missing = map[string]answer{}
	}
	for _, api := range a.unread {
		if _, known := a.missing[fieldsOf(api)]; !known {
			served, fields := a.read(api)
			a.missing[fieldsOf(api)] = answer{served, fields}
		}
	}
	a.unread = nil
}

func fieldsOf(api *corev1alpha1.DependencyAPI) string {
	return resolver.KeyOf(api.APIVersion, api.Kind) + " " + strings.Join(api.FieldPaths, " ")
}
