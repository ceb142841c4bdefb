package apply

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Unauthorized is a request that the authorizer of the API server refused, as opposed to
// admission.
type Unauthorized struct {
	// Verb is the missing right, such as patch; escalate if the object would grant rights that its
	// writer does not have.
	Verb string
	// Group and Resource, with a subresource, are the target of the missing right, and Namespace
	// its place; empty for the whole cluster. Resource is empty if the API server does not name it.
	Group, Resource, Namespace string
}

// The starts of the API server's own messages. Messages of a webhook, a policy or a quota start
// with its name.
var (
	cannot    = regexp.MustCompile(`^[^:"]*(?:"[^"]*")? is forbidden: User "[^"]*" cannot ([a-z]{1,20})(-on:[a-z:-]{1,80})? resource "`)
	of        = regexp.MustCompile(`^"([a-z0-9./-]{1,253})" in API group "([a-z0-9.-]{0,253})"(?: in the namespace "([a-z0-9-]{1,63})")?`)
	escalates = regexp.MustCompile(`^[^:"]*(?:\.rbac\.authorization\.k8s\.io)? ?"[^"]*" is forbidden: user "[^"]*" \(groups=.*\) is attempting to grant RBAC permissions not currently held`)
)

// AsUnauthorized returns the missing right that an error names; false for other errors.
func AsUnauthorized(err error) (Unauthorized, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusForbidden {
		return Unauthorized{}, false
	}
	message := status.Status().Message
	if at := cannot.FindStringSubmatchIndex(message); at != nil {
		missing := Unauthorized{Verb: message[at[2]:at[3]]}
		if at[4] >= 0 {
			return missing, true // constrained impersonation, which names the resource of the request
		}
		if m := of.FindStringSubmatch(message[at[1]-1:]); m != nil {
			missing.Resource, missing.Group, missing.Namespace = m[1], m[2], m[3]
		}
		return missing, true
	}
	if escalates.MatchString(message) {
		return Unauthorized{Verb: "escalate"}, true
	}

	return Unauthorized{}, false
}
