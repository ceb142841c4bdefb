package engine

import (
	"fmt"

	"lockstep.run/lockstep/internal/cluster/apply"
)

// Reasons of failures that a right would fix.
const (
	ReasonForbidden             = "Forbidden"
	ReasonServiceAccountMissing = "ServiceAccountMissing"
)

// ExplainTarget puts the refusal of a request to another cluster into words of our own,
// with the rule that grants the missing right; about is false for other errors. read means that the
// objects are only read. Objects of packages are watched in all namespaces.
func ExplainTarget(err error, read bool) (text string, about bool) {
	denied, is := apply.AsUnauthorized(err)
	if !is || denied.Resource == "" && denied.Verb != "escalate" {
		return "", false
	}
	if denied.Verb == "escalate" {
		return "the user of the kubeconfig may not grant rights that it does not have itself: give it these in the target, or the verb escalate on roles and clusterroles, and bind for bindings", true
	}

	group := denied.Group
	if group == "" {
		group = `""`
	}

	role, verbs := "a ClusterRole", "get, list, watch, create, patch, delete"
	local := read
	switch denied.Verb {
	case "get", "list", "watch":
		// The package can lack objects of these kinds.
		if read = read || denied.Resource == "customresourcedefinitions" || denied.Resource == "apiservices"; read {
			verbs = "get, list, watch"
		}
	default:
		local, verbs = true, "get, create, patch, delete"
	}

	if local && denied.Namespace != "" {
		role = "a Role in the namespace " + denied.Namespace + ", or a ClusterRole,"
	}
	return fmt.Sprintf("the user of the kubeconfig may not %s %s in the target: bind %s to it there with the rule {apiGroups: [%s], resources: [%s], verbs: [%s]}",
		denied.Verb, denied.Resource, role, group, denied.Resource, verbs), true
}
