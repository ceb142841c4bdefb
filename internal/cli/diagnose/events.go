package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/refusals"
)

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
