package objects

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
)

const heldMessageBytes = 160 // of each condition in the reason for a hanging deletion

// AwaitsDependents is the reason for a hanging foreground deletion.
const AwaitsDependents = "waits for its pods and other dependents to end"

// podOwners are the built-in kinds whose objects own pods, directly or through other objects.
var podOwners = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "Deployment"}: true,
	{Group: "apps", Kind: "ReplicaSet"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "batch", Kind: "CronJob"}: true, Job: true, {Kind: "ReplicationController"}: true,
}

// OwnsPods reports whether objects of a built-in kind own pods, directly or through other objects.
func OwnsPods(gk schema.GroupKind) bool { return podOwners[gk] }

// CollectedSince returns when an object was deleted, in seconds since the epoch, if only the
// garbage collector holds it and it does not own pods; otherwise 0.
func CollectedSince(gk schema.GroupKind, deleted *metav1.Time, finalizers []string) int64 {
	if deleted == nil || OwnsPods(gk) || !slices.Equal(finalizers, []string{metav1.FinalizerDeleteDependents}) {
		return 0
	}
	return deleted.Unix()
}

// HeldBy returns why a deletion hangs. It lists the finalizers, with the garbage collector's in
// words, and the conditions of Namespaces and CustomResourceDefinitions about their deletion.
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
			parts = append(parts, typ+": "+limits.Cut(message, heldMessageBytes))
		}
	}

	return limits.Cut(strings.Join(parts, "; "), limits.HeldBytes)
}
