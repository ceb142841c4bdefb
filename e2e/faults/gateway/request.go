package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Request is a request as the gateway sees it.
type Request struct {
	Method string
	// Group, Resource, Namespace, Name and Subresource are empty for requests about
	// no resource. Path is always there.
	Group, Resource, Namespace, Name, Subresource, Path string
	// Other means that the request is to another cluster than the manager's own.
	Other bool
	// List and Watch are reads of collections. Initial means that a watch starts with
	// a list.
	List, Watch, Initial bool
	Apply, JSONPatch     bool
	DryRun               bool
	// Guarded marks an apply that can only create.
	Guarded bool
	// Revision is the number of the revision in an apply's annotation, 0 if there is
	// none.
	Revision int64
	Body     []byte
	Patch    Patch

	id string // the audit log's
}

// Patch has the fields that distinguish kinds of writes on our own objects.
type Patch struct {
	Metadata struct {
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
		Finalizers      json.RawMessage   `json:"finalizers"`
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
	// Reason is the reason of an event.
	Reason string `json:"reason"`
}

// Writes reports whether the request can change something.
func (q *Request) Writes() bool { return q.Method != http.MethodGet && q.Method != http.MethodHead }

// ID is the request's ID in the audit log.
func (q *Request) ID() string { return q.id }

// String names the request.
func (q *Request) String() string {
	if q.Resource == "" {
		return q.Method + " " + q.Path
	}
	s := q.Method + " " + q.Resource + " " + q.Namespace + "/" + q.Name
	if q.Subresource != "" {
		s += " " + q.Subresource
	}
	return s
}

// parse reads a request's path, query and body.
func parse(r *http.Request, body []byte) *Request {
	query := r.URL.Query()
	q := &Request{Method: r.Method, Path: r.URL.Path, Body: body, DryRun: query.Has("dryRun")}
	contentType := r.Header.Get("Content-Type")
	q.Apply = strings.HasPrefix(contentType, "application/apply-patch")
	q.JSONPatch = strings.HasPrefix(contentType, "application/json-patch")
	q.locate()
	if r.Method == http.MethodGet {
		q.Watch, _ = strconv.ParseBool(query.Get("watch"))
		q.Initial, _ = strconv.ParseBool(query.Get("sendInitialEvents"))
		q.List = q.Resource != "" && q.Name == "" && !q.Watch
	}
	if !q.JSONPatch {
		_ = json.Unmarshal(body, &q.Patch) // only JSON bodies distinguish kinds of writes
	}
	if q.Name == "" {
		q.Name = q.Patch.Metadata.Name
	}
	q.Guarded = q.Apply && q.Patch.Metadata.ResourceVersion == "1"
	q.Revision, _ = strconv.ParseInt(q.Patch.Metadata.Annotations[corev1alpha1.RevisionAnnotation], 10, 64)
	return q
}

// locate takes the path apart.
func (q *Request) locate() {
	segments := strings.Split(strings.Trim(q.Path, "/"), "/")
	switch {
	case len(segments) > 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		q.Group, segments = segments[1], segments[3:]
	default:
		return
	}
	if len(segments) > 2 && segments[0] == "namespaces" {
		q.Namespace, segments = segments[1], segments[2:]
	}
	for i, part := range []*string{&q.Resource, &q.Name, &q.Subresource} {
		if i < len(segments) {
			*part = segments[i]
		}
	}
}

// Event is an event of a watch.
type Event struct {
	// Watch is the request that opened the watch.
	Watch *Request
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Namespace       string `json:"namespace"`
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	} `json:"object"`
}
