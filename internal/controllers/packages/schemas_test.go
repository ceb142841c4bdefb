package packages

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

func TestSchemas(t *testing.T) {
	t.Parallel()
	api := func(paths ...string) *corev1alpha1.DependencyAPI {
		return &corev1alpha1.DependencyAPI{APIVersion: "example.com/v1", Kind: "Shop", FieldPaths: paths}
	}
	reads := 0
	a := &schemas{read: func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		if len(api.FieldPaths) > 0 {
			reads++
		}
		return true, api.FieldPaths
	}}
	if served, missing := a.served(api()); !served || len(missing) > 0 || len(a.unread) > 0 {
		t.Error("whether an API is served needs no read")
	}
	if a.served(api("spec.a")); reads > 0 || len(a.unread) != 1 {
		t.Errorf("%d reads during a resolution, %d put off", reads, len(a.unread))
	}
	a.served(api("spec.a"))
	a.readAll()
	if served, missing := a.served(api("spec.a")); !served || len(missing) != 1 || reads != 1 || len(a.unread) > 0 {
		t.Errorf("%t %v after %d reads, %d put off", served, missing, reads, len(a.unread))
	}
	if a.served(api("spec.b")); len(a.unread) != 1 {
		t.Error("other fields of the API are another question")
	}
}

// Nothing waits while the API server is read.
func TestSchemasAreReadBeforeTheResolution(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	entry := corev1alpha1.DependencyStatus{}
	entry.Name, entry.API = "shops", &corev1alpha1.DependencyAPI{APIVersion: "example.com/v1", Kind: "Shop", FieldPaths: []string{"spec.a"}}
	pkg := newPackage(recording(entry))
	reads := 0
	c.ServedAPI = resolver.Served(func(*corev1alpha1.DependencyAPI) (bool, []string) {
		if reads++; !c.resolving.TryLock() {
			t.Error("the resolution of others waits for a read")
			return true, nil
		}
		c.resolving.Unlock()
		return true, nil
	})
	s := c.of(pkg)
	s.step = stepSync
	c.must(s.depend(t.Context()))
	if s.required == nil || !s.required.result.Ready || reads != 1 {
		t.Errorf("%+v after %d reads", s.required, reads)
	}
}
