package objectsets

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
)

// RejectReserved blocks a revision with objects that a package must not contain: those for which
// why returns a reason. They are neither written nor deleted.
func RejectReserved(r *engine.Revision, why func(objects.Key) string) {
	var messages []objects.Message
	for _, d := range r.AllObjects() {
		if reason := why(d.Key); reason != "" && !d.Reserved {
			d.Keep, d.Reserved = true, true
			messages = append(messages, objects.Message{Object: d.Key.String(), Text: reason})
		}
	}

	var problems []string
	for _, group := range objects.GroupMessages(messages) {
		problems = append(problems, group.String())
	}
	if before := r.Blocked(); before != "" {
		problems = append(problems, before)
	}
	r.Block(strings.Join(problems, "; "))
}

// engineNames are the names of the objects in config.
var engineNames = []string{
	"lockstep-manager", "lockstep-leader-election", "lockstep-foreground-deletion",
	"lockstep-generated-packages",
	"lockstep-view", "lockstep-edit", "lockstep-admin", "lockstep-author", "lockstep-activator", "lockstep-tenant", "lockstep-manager-egress", "lockstep-manager-metrics", "lockstep-metrics-reader",
	"lockstep-agent", "lockstep-agent-all-namespaces", "lockstep-agent-target",
}

// OfEngine returns the reason why an object is reserved, or an empty text. Objects of the engine in
// its namespace are reserved for Package Operator's own package.
func OfEngine(owner objects.Owner, namespace string) func(objects.Key) string {
	return func(key objects.Key) string {
		if owner.Namespace == "" && owner.Name == corev1alpha1.EnginePackage || !ofEngine(key, namespace) {
			return ""
		}
		return "is a part of the engine itself: remove it; only the ClusterPackage " + corev1alpha1.EnginePackage + " may have it"
	}
}

// MarkedGenerated reports whether an object is a package with the mark of packages that the
// engine installs for others. Only the engine's rights allow that mark, so the engine refuses
// to set it on behalf of the object's author.
func MarkedGenerated(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == corev1alpha1.GroupName && strings.HasSuffix(u.GetKind(), "Package") &&
		u.GetLabels()[corev1alpha1.GeneratedLabel] == "true"
}

// ofEngine reports whether an object belongs to the engine's own installation: its CRDs, its
// namespace, its Leases, and the objects of config by their names.
func ofEngine(key objects.Key, namespace string) bool {
	switch {
	case key.Group == "apiextensions.k8s.io" && key.Kind == "CustomResourceDefinition":
		return strings.HasSuffix(key.Name, "."+corev1alpha1.GroupVersion.Group)
	case key.Group == "" && key.Kind == "Namespace":
		return key.Name == namespace
	case key.Namespace != "" && key.Namespace != namespace:
		return false
	}

	return key.Name == corev1alpha1.LeaderElectionLease || key.Name == corev1alpha1.AgentLeaderElectionLease || slices.Contains(engineNames, key.Name)
}
