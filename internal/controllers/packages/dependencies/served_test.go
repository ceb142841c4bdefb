package dependencies

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	api := func(paths ...string) *corev1alpha1.DependencyAPI {
		return &corev1alpha1.DependencyAPI{APIVersion: "example.com/v1", Kind: "Shop", FieldPaths: paths}
	}
	reads := 0
	once := Once(func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		if len(api.FieldPaths) > 0 {
			reads++
		}
		return true, api.FieldPaths
	})
	if served, missing := once(api()); !served || len(missing) > 0 || reads > 0 {
		t.Error("whether an API is served needs no read")
	}
	for range 2 {
		if served, missing := once(api("spec.a")); !served || len(missing) != 1 || reads != 1 {
			t.Errorf("%t %v after %d reads", served, missing, reads)
		}
	}
	if once(api("spec.b")); reads != 2 {
		t.Error("other fields of the API are another question")
	}
}
