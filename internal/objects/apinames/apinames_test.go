package apinames_test

import (
	"reflect"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// TestDefault compares the engine's own constants with the API, and checks that no name is missing.
func TestDefault(t *testing.T) {
	t.Parallel()
	for ours, of := range map[string]string{
		string(objects.CollisionProtectionPrevent):        string(corev1alpha1.CollisionProtectionPrevent),
		string(objects.CollisionProtectionIfNoController): string(corev1alpha1.CollisionProtectionIfNoController),
		string(objects.CollisionProtectionNone):           string(corev1alpha1.CollisionProtectionNone),
		engine.ReasonForbidden:                            corev1alpha1.ReasonForbidden,
		engine.ReasonServiceAccountMissing:                corev1alpha1.ReasonServiceAccountMissing,
	} {
		if ours != of {
			t.Errorf("the engine has %q, the API %q", ours, of)
		}
	}

	all := reflect.ValueOf(*apinames.Default)
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Errorf("%s is not set", all.Type().Field(i).Name)
		}
	}
}
