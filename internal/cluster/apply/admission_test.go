package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
)

// TestDeniedBy checks that the origin of a refusal is found, and that quoted names are ignored.
func TestDeniedBy(t *testing.T) {
	t.Parallel()
	const (
		policy = `configmaps "web" is forbidden: ValidatingAdmissionPolicy 'teams' with binding 'teams-shop' denied request: a team is missing`
		hook   = `admission webhook "costs.example.com" denied the request: `
	)
	hooks := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{"garbage", map[string]any{"name": "costs.example.com"}}}}
	for _, tc := range []struct {
		reason, message, kind, name string
		want                        bool
	}{
		{"the binding", policy, "ValidatingAdmissionPolicyBinding", "teams-shop", true},
		{"another binding", policy, "ValidatingAdmissionPolicyBinding", "teams", false},
		{"the policy", policy, "ValidatingAdmissionPolicy", "teams", true},
		{"another kind", policy, "ValidatingWebhookConfiguration", "teams", false},
		{"the webhook of a configuration", hook + "no", "ValidatingWebhookConfiguration", "any", true},
		{"a mutating one", hook + "no", "MutatingWebhookConfiguration", "any", true},
		{"a policy that a webhook quotes", hook + policy, "ValidatingAdmissionPolicy", "teams", false},
		{"a webhook that a policy quotes", policy + hook, "ValidatingWebhookConfiguration", "any", false},
		{"another webhook", `admission webhook "other.example.com" denied the request: no`, "ValidatingWebhookConfiguration", "any", false},
		{"one that cannot be called", `failed calling webhook "costs.example.com": EOF`, "ValidatingWebhookConfiguration", "any", false},
	} {
		d, _ := DeniedBy(tc.message)
		key := objects.Key{Group: "admissionregistration.k8s.io", Kind: tc.kind, Name: tc.name}
		if got := d.Is(key, hooks); got != tc.want {
			t.Errorf("%s: %t of %+v", tc.reason, got, d)
		}
		if key.Group = "example.com"; d.Is(key, hooks) {
			t.Errorf("%s: a foreign kind", tc.reason)
		}
	}
}
