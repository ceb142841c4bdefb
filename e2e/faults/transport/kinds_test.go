package transport_test

import (
	"net/http"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/gateway"
)

// ledger classifies the writes about one package. The kind of a write depends on the
// previous successful ones. The life's lock guards it.
type ledger struct {
	stage *stage
	// The latest status of each set, by its name.
	claimed, succeeded map[string]bool
	opened             map[string]int
}

func newLedger() *ledger {
	return &ledger{claimed: map[string]bool{}, succeeded: map[string]bool{}, opened: map[string]int{}}
}

// kind returns the kind of a write; empty if the write is ignored.
func (l *ledger) kind(q *gateway.Request) string {
	noun := nouns[strings.TrimPrefix(q.Resource, "cluster")]
	switch {
	case q.Resource == "" || q.Resource == "leases" || q.Group == "authentication.k8s.io" || q.Group == "authorization.k8s.io":
		return ""
	case q.Resource == "events":
		return "event"
	case q.Resource == "secrets" && !q.Other && !strings.HasPrefix(q.Name, secretPrefix):
		return storeKind(q)
	case q.Group != corev1alpha1.GroupVersion.Group:
		return l.objectKind(q)
	case q.Subresource == "status" && noun == "set":
		return l.setStatusKind(q)
	case q.Subresource != "":
		return noun + " " + q.Subresource
	case q.Method == http.MethodPost:
		return noun + " create"
	case q.Method == http.MethodDelete:
		return noun + " delete"
	case takesFinalizers(q):
		return noun + " finalizer removal"
	case putsFinalizers(q):
		return noun + " finalizer"
	case q.Patch.Spec.LifecycleState != "":
		return noun + " to " + q.Patch.Spec.LifecycleState
	}
	return noun + " change"
}

var nouns = map[string]string{
	"packages": "package", "objectdeployments": "deployment", "objectsets": "set", "objectslices": "slice",
}

// storeKind classifies writes of Secrets that the engine keeps objects and keys in.
func storeKind(q *gateway.Request) string {
	noun := "secret slice"
	if strings.Contains(q.Name, "hash-key") {
		noun = "hash key"
	}
	switch q.Method {
	case http.MethodPost:
		return noun + " create"
	case http.MethodDelete:
		return noun + " delete"
	}
	return noun + " finalizer removal"
}

// objectKind classifies writes on objects of packages.
func (l *ledger) objectKind(q *gateway.Request) string {
	creates := q.Guarded || q.Method == http.MethodPost
	switch {
	case q.Method == http.MethodDelete:
		return "object delete"
	case q.DryRun:
		return "object dry run"
	case creates && l.stage.drift:
		return "object recreation"
	case creates:
		return "object create"
	case q.Apply && l.stage.drift:
		return "object drift correction"
	case q.Apply && l.stage.changes(q.Name):
		return "object change"
	case q.Apply:
		return "object relabelling"
	case q.JSONPatch:
		return "object release"
	}
	return "object " + strings.ToLower(q.Method)
}

// setStatusKind classifies the statuses that something relies on.
func (l *ledger) setStatusKind(q *gateway.Request) string {
	key := q.Namespace + "/" + q.Name
	switch {
	case says(q, corev1alpha1.ConditionArchived, "True"):
		return "set archived status"
	case says(q, corev1alpha1.ConditionClaimed, "True") && !l.claimed[key]:
		return "set claim"
	case opened(q) > l.opened[key]:
		return "set gate"
	case says(q, corev1alpha1.ConditionSucceeded, "True") && !l.succeeded[key]:
		return "set success"
	}
	return "set status"
}

// took remembers a write that took effect.
func (l *ledger) took(q *gateway.Request) {
	if q.Subresource != "status" || strings.TrimPrefix(q.Resource, "cluster") != "objectsets" {
		return
	}
	key := q.Namespace + "/" + q.Name
	l.claimed[key] = l.claimed[key] || says(q, corev1alpha1.ConditionClaimed, "True")
	l.succeeded[key] = l.succeeded[key] || says(q, corev1alpha1.ConditionSucceeded, "True")
	l.opened[key] = max(l.opened[key], opened(q))
}

func says(q *gateway.Request, condition, status string) bool {
	for _, c := range q.Patch.Status.Conditions {
		if c.Type == condition && c.Status == status {
			return true
		}
	}
	return false
}

// opened returns the number of open phases in a status.
func opened(q *gateway.Request) int {
	n := 0
	for _, p := range q.Patch.Status.Phases {
		if p.State.Opened() {
			n++
		}
	}
	return n
}

func takesFinalizers(q *gateway.Request) bool {
	if q.JSONPatch {
		return strings.Contains(string(q.Body), "/metadata/finalizers")
	}
	return len(q.Patch.Metadata.Finalizers) > 0 && !strings.Contains(string(q.Patch.Metadata.Finalizers), "package-operator.run/")
}

func putsFinalizers(q *gateway.Request) bool {
	return strings.Contains(string(q.Patch.Metadata.Finalizers), "package-operator.run/")
}
