package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/refusals"
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

// eventsShown is the maximum number of events that are shown for an object.
const eventsShown = 3

// eventFindings returns the latest warnings about an object.
func eventFindings(object string, events []corev1.Event) []finding {
	warnings := slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return e.Type != corev1.EventTypeWarning })
	slices.SortStableFunc(warnings, func(a, b corev1.Event) int {
		return cmp.Or(seen(&b).Compare(seen(&a)), cmp.Compare(a.Message, b.Message))
	})
	var found []finding
	said := map[string]bool{}
	for i := range warnings {
		e := &warnings[i]
		// Repeated events can be separate objects with the same message.
		if len(found) == eventsShown || said[e.Message] {
			continue
		}
		said[e.Message] = true
		state, series := "", ptr.Deref(e.Series, corev1.EventSeries{})
		if n := max(e.Count, series.Count); n > 1 {
			state = fmt.Sprintf("%d times", n)
		}

		found = append(found, finding{
			link:  Link{Object: "event " + e.Reason, State: state, Message: e.Message},
			cause: eventCause(object, e),
		})
	}

	return found
}

// eventCause returns the cause that an event explains. Some reasons of the kubelet and the
// scheduler are conclusive.
func eventCause(object string, e *corev1.Event) cause {
	c := cause{weight: weightEvent, object: object, reason: ReasonCondition, text: object + ": " + e.Reason + ": " + e.Message}
	says := func(text string) bool { return strings.Contains(e.Message, text) }
	switch {
	case e.Reason == "FailedCreate", says("exceeded quota"):
		return notCreated(object, e.InvolvedObject.Namespace, strings.TrimPrefix(e.Message, "Error creating: "))
	case e.Reason == "FailedScheduling":
		c.weight, c.reason = weightPod, ReasonUnschedulable
		c.text = object + " cannot be scheduled: " + e.Message
		c.remedy = "Make room on the nodes, or relax the pod's constraints: requests, selectors, affinities, tolerations."
	case e.Reason == "FailedMount", e.Reason == "FailedAttachVolume", e.Reason == "ProvisioningFailed", e.Reason == "FailedBinding":
		c.weight, c.reason = weightPod, ReasonVolume
		c.text = object + ": a volume is missing: " + e.Message
		c.remedy = "Check the volume's claim, its storage class, and the Secrets and ConfigMaps that it names."
	case e.Reason == "Unhealthy":
		c.reason = ReasonNotReady
		c.text = object + " is not ready: " + e.Message
		c.remedy = "Check the request of the probe, and the container's log."
		c.weight = weightPod
	}

	return c
}

// notCreated means that a controller cannot create an object, according to an event or a condition.
func notCreated(object, namespace, message string) cause {
	switch {
	case strings.Contains(message, "exceeded quota"):
		c := certain(object, refusals.OfQuota("what "+object+" needs", message))
		c.remedy = strings.ReplaceAll(c.remedy, "NAMESPACE", cmp.Or(namespace, "NAMESPACE"))
		return c
	case strings.Contains(message, "denied the request"):
		return cause{
			weight: weightCertain, reason: ReasonWebhook, object: object,
			text:   "the webhook " + refusals.Quoted(message) + " refuses the pods of " + object + ": " + refusals.WebhookReason(message),
			remedy: "Change the template as the webhook requires, or the webhook's configuration.",
		}
	}

	c := cause{weight: weightPod, reason: ReasonRefused, object: object, text: object + " cannot create its pods: " + message}
	switch account := missingAccount.FindStringSubmatch(message); {
	case account != nil:
		c.remedy = fmt.Sprintf("Add the ServiceAccount to an earlier phase, or create it: kubectl -n %s create serviceaccount %s", account[1], account[2])
	case strings.Contains(message, "violates PodSecurity "):
		c.remedy = fmt.Sprintf("Make the pods request less in their securityContext, or allow more in the namespace: "+
			"kubectl label namespace %s pod-security.kubernetes.io/enforce=LEVEL", cmp.Or(namespace, "NAMESPACE"))
	}

	return c
}

// missingAccount matches the API server's message about a ServiceAccount that does not exist.
var missingAccount = regexp.MustCompile(`error looking up service account ([a-z0-9.-]+)/([a-z0-9.-]+): `)

// seen returns the time when an event was last seen. Its field depends on the API that wrote the
// event.
func seen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// refused reports whether the message of a blocking object is about a refused write.
func refused(key objects.Key, object, message string) (cause, bool) {
	r, is := refusals.Of(key, object, message)
	return certain(objectdiff.Short(key), r), is
}

// certain returns a refusal as a cause that needs no further search.
func certain(object string, r refusals.Refusal) cause {
	return cause{weight: weightCertain, reason: r.Reason, object: object, text: r.Text, remedy: r.Remedy}
}
