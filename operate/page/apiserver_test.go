package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// object is an object in JSON's types.
type object = map[string]any

const engine = "package-operator.run/v1alpha1"

// served are the kinds of the API server by the names of their resources. Cluster-scoped ones have
// an asterisk.
var served = map[string]map[string]string{
	engine: {
		"packages": "Package", "clusterpackages": "ClusterPackage*", "objectdeployments": "ObjectDeployment", "clusterobjectdeployments": "ClusterObjectDeployment*",
		"objectsets": "ObjectSet", "clusterobjectsets": "ClusterObjectSet*", "objectslices": "ObjectSlice", "clusterobjectslices": "ClusterObjectSlice*",
	},
	"v1": {
		"namespaces": "Namespace*", "pods": "Pod", "events": "Event", "configmaps": "ConfigMap", "secrets": "Secret", "services": "Service",
		"serviceaccounts": "ServiceAccount",
	},
	"apps/v1":                 {"deployments": "Deployment", "replicasets": "ReplicaSet"},
	"coordination.k8s.io/v1":  {"leases": "Lease"},
	"authorization.k8s.io/v1": {"selfsubjectaccessreviews": "SelfSubjectAccessReview*", "selfsubjectrulesreviews": "SelfSubjectRulesReview*"},
}

// resourceOf returns the resource of a kind, and whether it is cluster-scoped.
func resourceOf(version, kind string) (resource string, cluster bool) {
	for resource, served := range served[version] {
		if name, star := strings.CutSuffix(served, "*"); name == kind {
			return resource, star
		}
	}
	panic("no " + kind + " of " + version)
}

type event struct {
	resource, verb string
	object         []byte
	labels         object
	namespace      string
	name           string
	version        int
}

// apiServer keeps objects, and answers reads and watches of them.
type apiServer struct {
	*httptest.Server
	mu      sync.Mutex
	changed *sync.Cond
	// objects are by resource, namespace and name; events are all changes.
	objects map[string]map[string]object
	events  []event
	// written are requests other than reads.
	written []string
	closed  bool
	// failure is how requests fail at present.
	failure failure
}

// failure is a way that an API server fails.
type failure int

const (
	// away ends each connection without an answer. forbidding refuses all requests for packages.
	away failure = iota + 1
	forbidding
)

// fail makes requests fail from now on, including open ones. Without a failure, requests succeed
// again.
func (s *apiServer) fail(how failure) {
	s.mu.Lock()
	s.failure = how
	s.mu.Unlock()
	s.CloseClientConnections()
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{objects: map[string]map[string]object{}}
	s.changed = sync.NewCond(&s.mu)
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.changed.Broadcast()
		s.mu.Unlock()
		s.CloseClientConnections()
		s.Close()
	})

	return s
}

// kubeconfig writes a kubeconfig for this server.
func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":"shop"}}],
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func metaOf(o object) object { return o["metadata"].(object) }

func keyOf(o object) string {
	namespace, _ := metaOf(o)["namespace"].(string)
	return namespace + "/" + metaOf(o)["name"].(string)
}

// writes returns the requests so far, other than reads.
func (s *apiServer) writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.written)
}

// put stores objects, and sends events to watches.
func (s *apiServer) put(all ...object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range all {
		s.store(o)
	}
	s.changed.Broadcast()
}

func (s *apiServer) store(o object) {
	resource, _ := resourceOf(o["apiVersion"].(string), o["kind"].(string))
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]object{}
	}
	verb := "ADDED"
	if _, is := s.objects[resource][keyOf(o)]; is {
		verb = "MODIFIED"
	}
	s.objects[resource][keyOf(o)] = o
	s.append(resource, verb, o)
}

func (s *apiServer) append(resource, verb string, o object) {
	version := len(s.events) + 1
	metaOf(o)["resourceVersion"] = fmt.Sprint(version)
	if metaOf(o)["uid"] == nil {
		metaOf(o)["uid"] = "uid-" + resource + "-" + keyOf(o)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	labels, _ := metaOf(o)["labels"].(object)
	namespace, _ := metaOf(o)["namespace"].(string)
	s.events = append(s.events, event{resource, verb, raw, labels, namespace, metaOf(o)["name"].(string), version})
}

// change changes an existing object.
func (s *apiServer) change(o object, how func(object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource, _ := resourceOf(o["apiVersion"].(string), o["kind"].(string))
	how(s.objects[resource][keyOf(o)])
	s.append(resource, "MODIFIED", s.objects[resource][keyOf(o)])
	s.changed.Broadcast()
}

// request is a parsed path with its query.
type request struct {
	version, resource, namespace, name, sub string
	labels, fields                          map[string]string
}

func (q request) wants(namespace, name string, labels object) bool {
	if q.namespace != "" && q.namespace != namespace || q.fields["metadata.name"] != "" && q.fields["metadata.name"] != name {
		return false
	}
	for key, value := range q.labels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func terms(text string) map[string]string {
	found := map[string]string{}
	for term := range strings.SplitSeq(text, ",") {
		if key, value, is := strings.Cut(term, "="); is {
			found[key] = strings.TrimPrefix(value, "=")
		}
	}
	return found
}

func requestOf(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := request{labels: terms(r.URL.Query().Get("labelSelector")), fields: terms(r.URL.Query().Get("fieldSelector"))}
	switch {
	case parts[0] == "api" && len(parts) > 1:
		q.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		q.version, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return q
	}

	if len(parts) > 2 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}

	for i, part := range parts[:min(len(parts), 3)] {
		*[]*string{&q.resource, &q.name, &q.sub}[i] = part
	}

	return q
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := requestOf(r)
	kind := strings.TrimSuffix(served[q.version][q.resource], "*")
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	switch {
	case failure == away:
		panic(http.ErrAbortHandler)
	case failure == forbidding && strings.HasSuffix(q.resource, "packages"):
		refuse(w, http.StatusForbidden, "Forbidden", q.resource+" is forbidden: not any more")
	case q.resource == "":
		s.discover(w, r, q)
	case kind == "":
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case r.Method == http.MethodGet && q.name != "":
		s.mu.Lock()
		o := s.objects[q.resource][q.namespace+"/"+q.name]
		raw, _ := json.Marshal(o)
		s.mu.Unlock()
		if o == nil {
			refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", q.resource, q.name))
			return
		}
		answer(w, http.StatusOK, json.RawMessage(raw))
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r, q)
	case r.Method == http.MethodGet:
		s.list(w, q, kind)
	case r.Method == http.MethodPost && strings.HasPrefix(q.version, "authorization"):
		answer(w, http.StatusCreated, object{"apiVersion": q.version, "kind": kind, "status": object{"allowed": true}})
	default:
		s.write(w, r)
	}
}

func (s *apiServer) discover(w http.ResponseWriter, r *http.Request, q request) {
	switch {
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case r.URL.Path == "/apis":
		var groups []object
		for _, version := range slices.Sorted(maps.Keys(served)) {
			if group, v, is := strings.Cut(version, "/"); is {
				at := object{"groupVersion": version, "version": v}
				groups = append(groups, object{"name": group, "versions": []object{at}, "preferredVersion": at})
			}
		}
		answer(w, http.StatusOK, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, object{"major": "1", "minor": "36", "gitVersion": "v1.36.0"})
	case served[q.version] != nil:
		var resources []object
		for name, kind := range served[q.version] {
			kind, star := strings.CutSuffix(kind, "*")
			resources = append(resources, object{"name": name, "kind": kind, "namespaced": !star, "verbs": []string{"get", "list", "watch", "patch", "create", "delete", "update"}})
		}
		answer(w, http.StatusOK, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": q.version, "resources": resources})
	default:
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
}

func (s *apiServer) list(w http.ResponseWriter, q request, kind string) {
	s.mu.Lock()
	items := []json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(s.objects[q.resource])) {
		o := s.objects[q.resource][key]
		namespace, _ := metaOf(o)["namespace"].(string)
		labels, _ := metaOf(o)["labels"].(object)
		if q.wants(namespace, metaOf(o)["name"].(string), labels) {
			raw, _ := json.Marshal(o)
			items = append(items, raw)
		}
	}

	version := fmt.Sprint(len(s.events))
	s.mu.Unlock()
	answer(w, http.StatusOK, object{"apiVersion": q.version, "kind": kind + "List", "metadata": object{"resourceVersion": version}, "items": items})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, q request) {
	if r.URL.Query().Get("sendInitialEvents") != "" { // then the client lists
		refuse(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is not served")
		return
	}

	var from int
	_, _ = fmt.Sscan(r.URL.Query().Get("resourceVersion"), &from)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	gone := false
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		s.mu.Lock()
		gone = true
		s.changed.Broadcast()
		s.mu.Unlock()
	}()

	for {
		s.mu.Lock()
		for from == len(s.events) && !gone && !s.closed {
			s.changed.Wait()
		}
		next := s.events[min(from, len(s.events)):]
		end := gone || s.closed
		s.mu.Unlock()
		if end {
			return
		}
		for _, e := range next {
			if from = e.version; e.resource == q.resource && q.wants(e.namespace, e.name, e.labels) {
				if _, err := fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", e.verb, e.object); err != nil {
					return
				}
			}
		}
		_ = flush()
	}
}

// write refuses and records a request that is not a read.
func (s *apiServer) write(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, r.Method+" "+r.URL.Path)
	refuse(w, http.StatusForbidden, "Forbidden", "nothing is written here")
}
