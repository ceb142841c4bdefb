package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// bad types, and suffixes of types, are problems if they are True. All other types are problems if
// they are not True, except idle ones.
var (
	bad = []string{
		"Failed", "Degraded", "Stalled", "FailureTarget", "NonStructuralSchema", "Terminating", "Suspended", "Paused", "DisruptionTarget",
	}
	badEnds = []string{"Failure", "Failed", "Error", "Unhealthy", "Pressure", "Unavailable", "Remaining"}
)

// idle types are never problems, except Progressing of a Deployment.
var idle = []string{
	"Progressing", "Reconciling", "Issuing", "ScalingLimited", "Deleting", "Updating", "RollingOut", "ScalingUp", "ScalingDown", "Remediating",
	"Resizing", "FileSystemResizePending", "ControllerResizeInProgress", "NodeResizeInProgress",
}

// deployment and statefulSet are the kinds with special conditions or pods.
var deployment, statefulSet = schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

// isBad reports whether a condition of a type is a problem if it is True.
func isBad(typ string) bool {
	return slices.Contains(bad, typ) || slices.ContainsFunc(badEnds, func(end string) bool { return strings.HasSuffix(typ, end) })
}

// isWrong reports whether a condition shows a problem. Progressing is a problem only for a
// Deployment, where False means that its deadline has passed.
func isWrong(kind schema.GroupKind, typ, status string) bool {
	switch {
	case isBad(typ):
		return status == "True"
	case slices.Contains(idle, typ) && kind != deployment:
		return false
	}
	return status == "False" || status == "Unknown"
}

// conditionFindings returns a finding for each condition that shows a problem.
func conditionFindings(key objects.Key, u *unstructured.Unstructured) []finding {
	var found []finding
	for _, c := range conditionsOf(u) {
		if isWrong(key.GroupKind(), c.Type, string(c.Status)) {
			found = append(found, finding{
				link:  Link{Object: "condition " + c.Type, State: strings.TrimSpace(string(c.Status) + " " + c.Reason), Message: c.Message},
				cause: conditionCause(key, c.Type, c.Reason, c.Message),
			})
		}
	}
	return found
}

// conditionsOf skips invalid entries.
func conditionsOf(u *unstructured.Unstructured) (found []status.BasicCondition) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		var c status.BasicCondition
		if fields, ok := item.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil {
			found = append(found, c)
		}
	}
	return found
}

// conditionOf returns an empty condition if there is none.
func conditionOf(u *unstructured.Unstructured, typ string) status.BasicCondition {
	for _, c := range conditionsOf(u) {
		if c.Type == typ {
			return c
		}
	}
	return status.BasicCondition{}
}

var (
	crd = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	job = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// conditionCause returns the cause that a condition of an object explains. Conditions with a known
// meaning get a remedy and a higher weight.
func conditionCause(key objects.Key, typ, reason, message string) cause {
	object := objectdiff.Short(key)
	c := cause{weight: weightCondition, reason: ReasonCondition, object: object, text: object + " is not " + typ + said(strings.TrimSpace(reason+said(message)))}
	switch {
	case key.GroupKind() == crd && typ == "NamesAccepted":
		c.weight, c.reason = weightCertain, ReasonNotEstablished
		c.text = object + " is not established, because its names are taken: " + message
		c.remedy = "Another CustomResourceDefinition of the group has one of the names: kubectl get customresourcedefinitions. Remove that one, or choose other names."
	case key.GroupKind() == crd && typ == "NonStructuralSchema":
		c.weight, c.reason = weightCertain, ReasonNotEstablished
		c.text = object + " is not established, because its schema is not structural: " + message
		c.remedy = "Correct the schema in the package."
	case key.GroupKind() == crd && typ == "Established":
		c.reason, c.remedy = ReasonNotEstablished, "The API server accepts the definition once its names are free and its schema is valid."
	case key.GroupKind() == job && typ == "Failed":
		c.weight, c.reason = weightEvent, ReasonJob
		c.text = object + " has failed: " + strings.TrimSpace(reason+said(message))
		c.remedy = fmt.Sprintf("See its log: kubectl -n %s logs job/%s. Once the cause is fixed, run it again: kubectl package retry job/%s -n %s", key.Namespace, key.Name, key.Name, key.Namespace)
	case typ == "ReplicaFailure":
		// The message is the API server's refusal of a pod, which explains more than the condition.
		return notCreated(object, key.Namespace, message)
	case key.GroupKind() == apiService && typ == "Available":
		c.weight, c.reason = weightCertain, ReasonAPIService
		c.text = object + " is not available: " + strings.TrimSpace(reason+said(message))
		c.remedy = "Its Service has to exist, to have ready pods, and to be reachable from the API server with a certificate that its caBundle trusts: " +
			"kubectl get apiservice " + key.Name + " -o yaml names it. Delete the APIService if its server was uninstalled."
	case isBad(typ):
		c.text = object + " is " + typ + said(strings.TrimSpace(reason+said(message)))
	}

	return c
}
