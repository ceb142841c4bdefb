package apply

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
)

// Denial names the source of a denial at admission: a policy and its binding, or a webhook.
type Denial struct{ Policy, Binding, Webhook string }

var (
	deniedByPolicy = regexp.MustCompile(`(?:Validating|Mutating)AdmissionPolicy '([^']+)' with binding '([^']+)' denied request`)
	deniedByHook   = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
)

// DeniedBy parses the message of an admission error. It takes the first match, because the text of
// a policy or webhook follows and can quote anything.
func DeniedBy(message string) (Denial, bool) {
	policy, hook := deniedByPolicy.FindStringSubmatchIndex(message), deniedByHook.FindStringSubmatchIndex(message)
	switch {
	case policy != nil && (hook == nil || policy[0] < hook[0]):
		return Denial{Policy: message[policy[2]:policy[3]], Binding: message[policy[4]:policy[5]]}, true
	case hook != nil:
		return Denial{Webhook: message[hook[2]:hook[3]]}, true
	}
	return Denial{}, false
}

// Kinds returns the kinds of objects that can cause the denial, the narrowest first.
func (d Denial) Kinds() []string {
	if d.Webhook != "" {
		return []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
	}
	return []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"}
}

// Is reports whether an object causes the denial.
func (d Denial) Is(key objects.Key, object *unstructured.Unstructured) bool {
	switch {
	case !key.Admission() || !slices.Contains(d.Kinds(), key.Kind):
		return false
	case d.Webhook == "" && strings.HasSuffix(key.Kind, "Binding"):
		return key.Name == d.Binding
	case d.Webhook == "":
		return key.Name == d.Policy
	}

	hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	return slices.ContainsFunc(hooks, func(hook any) bool {
		fields, _ := hook.(map[string]any)
		return fields["name"] == d.Webhook
	})
}
