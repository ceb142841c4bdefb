package support

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Host is the address of the API server that Transport stands for.
const Host = "http://support-archive"

// transport answers the reads of a client from a snapshot; nothing leaves the process.
type transport struct {
	snapshot *Snapshot
	kinds    map[schema.GroupVersionResource]kind
}

type kind struct {
	schema.GroupVersionKind
	namespaced bool
	// own: all objects of it are in the archive, if any are.
	own bool
}

// Transport answers requests for own kinds, given by whether they are of namespaces, and for those that an archive has of the
// manager. Writes are refused, and so are reads of what no archive has.
func (s *Snapshot) Transport(own map[schema.GroupVersionKind]bool) http.RoundTripper {
	t := &transport{snapshot: s, kinds: map[schema.GroupVersionResource]kind{}}
	add := func(k kind) {
		plural, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
		t.kinds[plural] = k
	}
	for gvk, namespaced := range own {
		add(kind{gvk, namespaced, true})
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Event"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	} {
		add(kind{gvk, true, false})
	}
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var version schema.GroupVersion
	switch {
	case r.Method != http.MethodGet:
		return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden, "an archive is not changed"), nil
	case len(parts) == 1 && parts[0] == "api":
		return answer(r, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}), nil
	case len(parts) == 1 && parts[0] == "apis":
		return answer(r, http.StatusOK, t.groups()), nil
	case parts[0] == "api" && len(parts) > 1:
		version, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		version, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound, "an archive does not have this"), nil
	}
	if len(parts) == 0 {
		return answer(r, http.StatusOK, t.resources(version)), nil
	}
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	k, known := t.kinds[version.WithResource(parts[0])]
	switch {
	case !known:
		return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden, "the archive has no "+parts[0]), nil
	case len(parts) == 2:
		return t.one(r, k, namespace, parts[1]), nil
	case len(parts) > 2:
		return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden, "the archive has no "+strings.Join(parts[2:], "/")), nil
	case r.URL.Query().Get("watch") != "":
		return t.watch(r), nil
	}
	return t.list(r, k, namespace), nil
}

func (t *transport) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range t.kinds {
		at := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		if k.Group != "" && !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group }) {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{at}, PreferredVersion: at})
		}
	}
	return list
}

func (t *transport) resources(version schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
	for at, k := range t.kinds {
		if k.GroupVersion() == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: at.Resource, Kind: k.Kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}})
		}
	}
	return list
}

func (t *transport) one(r *http.Request, k kind, namespace, name string) *http.Response {
	found := t.snapshot.find(func(o *item) bool {
		return o.is(k) && o.Metadata.Namespace == namespace && o.Metadata.Name == name
	})
	switch {
	case len(found) > 0:
		return answer(r, http.StatusOK, json.RawMessage(found[0].raw))
	case k.own && t.snapshot.kinds[strings.ToLower(k.Kind)]:
		return refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", k.Kind, name))
	}
	return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden, "the archive does not have this "+k.Kind)
}

func (t *transport) list(r *http.Request, k kind, namespace string) *http.Response {
	query := r.URL.Query()
	byLabels, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return refuse(r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	byFields, err := selector.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return refuse(r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	if !k.own && k.Kind != "Event" && namespace == "" || k.own && !t.snapshot.kinds[strings.ToLower(k.Kind)] {
		return refuse(r, http.StatusForbidden, metav1.StatusReasonForbidden, "the archive has no list of this kind: "+k.Kind)
	}
	items := []json.RawMessage{}
	for _, o := range t.snapshot.find(func(o *item) bool {
		return o.is(k) && (namespace == "" || o.Metadata.Namespace == namespace) && byLabels.Matches(labels.Set(o.Metadata.Labels)) && byFields.Matches(o.fieldSet())
	}) {
		items = append(items, o.raw)
	}
	return answer(r, http.StatusOK, map[string]any{
		"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items,
	})
}

func (o *item) is(k kind) bool { return o.Kind == k.Kind && o.Version == k.GroupVersion().String() }

func (o *item) fieldSet() selector.Set {
	set := selector.Set{"metadata.name": o.Metadata.Name, "metadata.namespace": o.Metadata.Namespace}
	for name, value := range o.Involved {
		set["involvedObject."+name] = value
	}
	return set
}

// watch has no events: an archive does not change.
func (t *transport) watch(r *http.Request) *http.Response {
	if r.URL.Query().Get("sendInitialEvents") != "" { // the client lists then
		return refuse(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "an archive has no initial events")
	}
	response := answer(r, http.StatusOK, nil)
	response.ContentLength, response.Body = -1, quiet{r}
	return response
}

// quiet is a body without content, which ends with its request.
type quiet struct{ r *http.Request }

// Read implements io.Reader.
func (q quiet) Read([]byte) (int, error) {
	<-q.r.Context().Done()
	return 0, q.r.Context().Err()
}

// Close implements io.Closer.
func (quiet) Close() error { return nil }

func answer(r *http.Request, status int, value any) *http.Response {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte("null")
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(text)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}
}

func refuse(r *http.Request, code int32, reason metav1.StatusReason, message string) *http.Response {
	return answer(r, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Message: message, Code: code,
	})
}
