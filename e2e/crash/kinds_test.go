package crash_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// request is a write as the gateway sees it.
type request struct {
	method                                 string
	group, resource                        string
	namespace, name, subresource           string
	apply, jsonPatch, dryRun, createsGuard bool
	body                                   []byte
	patch                                  patchBody
}

// patchBody is what tells kinds of writes on our own objects apart.
type patchBody struct {
	Metadata struct {
		Name            string          `json:"name"`
		ResourceVersion string          `json:"resourceVersion"`
		Finalizers      json.RawMessage `json:"finalizers"`
	} `json:"metadata"`
	Spec struct {
		LifecycleState string `json:"lifecycleState"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		Phases []corev1alpha1.PhaseStatus `json:"phases"`
	} `json:"status"`
}

// parse reads a request's path, query and body.
func parse(r *http.Request, body []byte) request {
	q := request{method: r.Method, body: body, dryRun: r.URL.Query().Has("dryRun")}
	contentType := r.Header.Get("Content-Type")
	q.apply = strings.HasPrefix(contentType, "application/apply-patch")
	q.jsonPatch = strings.HasPrefix(contentType, "application/json-patch")
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(segments) > 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		q.group, segments = segments[1], segments[3:]
	default:
		return q
	}
	if len(segments) > 2 && segments[0] == "namespaces" {
		q.namespace, segments = segments[1], segments[2:]
	}
	for i, part := range []*string{&q.resource, &q.name, &q.subresource} {
		if i < len(segments) {
			*part = segments[i]
		}
	}
	if !q.jsonPatch {
		_ = json.Unmarshal(body, &q.patch) // what is no JSON has no kind of its own
	}
	q.createsGuard = q.apply && q.patch.Metadata.ResourceVersion == "1"
	return q
}

// ledger tells the kinds of writes. What a write means depends on those before
// it that took effect.
type ledger struct {
	mu sync.Mutex
	// stage of the scenario, and the objects that it changes.
	stage stage
	// What each set's status says since: by its namespace and name.
	claimed, succeeded map[string]bool
	opened             map[string]int
}

func newLedger() *ledger {
	return &ledger{claimed: map[string]bool{}, succeeded: map[string]bool{}, opened: map[string]int{}}
}

func (l *ledger) enter(s stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage = s
}

// kind names what a write is; empty for what does not count.
func (l *ledger) kind(q request) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	noun := nouns[strings.TrimPrefix(q.resource, "cluster")]
	switch {
	case q.resource == "" || q.resource == "leases" || q.group == "authentication.k8s.io" || q.group == "authorization.k8s.io":
		return ""
	case q.resource == "events":
		return "event"
	case q.group != corev1alpha1.GroupVersion.Group:
		return l.objectKind(q)
	case q.subresource == "status" && noun == "set":
		return l.setStatusKind(q)
	case q.subresource != "":
		return noun + " " + q.subresource
	case q.method == http.MethodPost:
		return noun + " create"
	case q.method == http.MethodDelete:
		return noun + " delete"
	case takesFinalizers(q):
		return noun + " finalizer removal"
	case putsFinalizers(q):
		return noun + " finalizer"
	case q.patch.Spec.LifecycleState != "":
		return noun + " to " + q.patch.Spec.LifecycleState
	}
	return noun + " change"
}

var nouns = map[string]string{
	"packages": "package", "objectdeployments": "deployment", "objectsets": "set", "objectslices": "slice",
}

// objectKind tells writes on objects of packages apart.
func (l *ledger) objectKind(q request) string {
	switch {
	case q.method == http.MethodDelete:
		return "object delete"
	case q.dryRun:
		return "object dry run"
	case q.createsGuard && l.stage.drift:
		return "object recreation"
	case q.createsGuard:
		return "object create"
	case q.apply && l.stage.drift:
		return "object drift correction"
	case q.apply && slices.Contains(l.stage.changes, q.name):
		return "object change"
	case q.apply:
		return "object relabelling"
	case q.jsonPatch:
		return "object release"
	}
	return "object " + strings.ToLower(q.method)
}

// setStatusKind tells the statuses apart that something relies on.
func (l *ledger) setStatusKind(q request) string {
	key := q.namespace + "/" + q.name
	switch {
	case q.says(corev1alpha1.ConditionArchived, "True"):
		return "set archived status"
	case q.says(corev1alpha1.ConditionClaimed, "True") && !l.claimed[key]:
		return "set claim"
	case q.opened() > l.opened[key]:
		return "set gate"
	case q.says(corev1alpha1.ConditionSucceeded, "True") && !l.succeeded[key]:
		return "set success"
	}
	return "set status"
}

// took remembers a write that took effect.
func (l *ledger) took(q request) {
	if q.subresource != "status" || strings.TrimPrefix(q.resource, "cluster") != "objectsets" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := q.namespace + "/" + q.name
	l.claimed[key] = l.claimed[key] || q.says(corev1alpha1.ConditionClaimed, "True")
	l.succeeded[key] = l.succeeded[key] || q.says(corev1alpha1.ConditionSucceeded, "True")
	l.opened[key] = max(l.opened[key], q.opened())
}

func (q request) says(condition, status string) bool {
	for _, c := range q.patch.Status.Conditions {
		if c.Type == condition && c.Status == status {
			return true
		}
	}
	return false
}

// opened counts the phases that a status says are open.
func (q request) opened() int {
	n := 0
	for _, p := range q.patch.Status.Phases {
		if p.State.Opened() {
			n++
		}
	}
	return n
}

func takesFinalizers(q request) bool {
	if q.jsonPatch {
		return strings.Contains(string(q.body), "/metadata/finalizers")
	}
	return len(q.patch.Metadata.Finalizers) > 0 && !strings.Contains(string(q.patch.Metadata.Finalizers), "package-operator.run/")
}

func putsFinalizers(q request) bool {
	return strings.Contains(string(q.patch.Metadata.Finalizers), "package-operator.run/")
}
