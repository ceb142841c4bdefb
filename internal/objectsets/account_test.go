package objectsets_test

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

func TestAccountOf(t *testing.T) {
	t.Parallel()
	named := &corev1alpha1.ObjectSetTemplateSpec{ServiceAccountName: "deployer"}
	for _, tc := range []struct {
		spec      *corev1alpha1.ObjectSetTemplateSpec
		namespace string
		want      objects.Account
	}{
		{&corev1alpha1.ObjectSetTemplateSpec{}, "shop", objects.Account{}},
		{&corev1alpha1.ObjectSetTemplateSpec{}, "", objects.Account{}},
		{named, "shop", objects.Account{Namespace: "shop", Name: "deployer"}},
		{named, "", objects.Account{Namespace: "system", Name: "deployer"}},
	} {
		if got := objectsets.AccountOf(tc.spec, tc.namespace, "system"); got != tc.want {
			t.Errorf("%v in %q: %v, want %v", tc.spec, tc.namespace, got, tc.want)
		}
	}
}
