package objects

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

const heldMessageBytes = 160 // of each condition in the reason why a deletion hangs

// AwaitsDependents is what holds an object that is deleted in the foreground.
const AwaitsDependents = "waits for its pods and other dependents to end"

// podOwners are the built-in kinds whose objects own pods, or own others that do.
var podOwners = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "Deployment"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "batch", Kind: "CronJob"}: true, Job: true, {Kind: "ReplicationController"}: true,
}

// OwnsPods reports whether a kind is a built-in one whose objects own pods, or own others that do.
func OwnsPods(gk schema.GroupKind) bool { return podOwners[gk] }

// CollectedSince returns the second since the epoch at which an object was deleted that the garbage collector
// alone holds; 0 for others, and for those that own pods.
func CollectedSince(gk schema.GroupKind, deleted *metav1.Time, finalizers []string) int64 {
	if deleted == nil || OwnsPods(gk) || !slices.Equal(finalizers, []string{metav1.FinalizerDeleteDependents}) {
		return 0
	}
	return deleted.Unix()
}

// HeldBy returns why a deletion hangs: finalizers, that of the garbage collector in words, and conditions
// about it, which Namespaces and CustomResourceDefinitions have.
func HeldBy(finalizers []string, conditions []any) string {
	var parts []string
	others := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	if len(others) > 0 {
		parts = append(parts, "held by finalizer "+strings.Join(others, ", "))
	}
	if len(others) < len(finalizers) {
		parts = append(parts, AwaitsDependents)
	}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		typ, _ := c["type"].(string)
		message, _ := c["message"].(string)
		if c["status"] == "True" && message != "" && (strings.HasPrefix(typ, "Namespace") || typ == "Terminating") {
			parts = append(parts, typ+": "+short(message, heldMessageBytes))
		}
	}
	return short(strings.Join(parts, "; "), limits.HeldBytes)
}

// short truncates a text.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
