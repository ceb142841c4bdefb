package hostile

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Attack answers a request, or returns false for the usual answer.
type Attack func(s *Server, w http.ResponseWriter, r *http.Request) bool

// Server answers like the API server of a cluster.
type Server struct {
	*httptest.Server
	// Sent counts the bytes of all answers, and Attacks the answers of an attack.
	Sent, Attacks atomic.Int64

	attack Attack

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // ConfigMaps by path
	changed chan struct{}             // closed at each change
	events  []event
}

type event struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// New starts a server, which ends with the test. attack can be nil.
func New(tb testing.TB, attack Attack) *Server {
	tb.Helper()
	s := &Server{attack: attack, objects: map[string]map[string]any{}, changed: make(chan struct{}), version: 100}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = nil
	s.EnableHTTP2 = true
	s.StartTLS()
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Kubeconfig returns a kubeconfig of a user of the server.
func (s *Server) Kubeconfig() []byte {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: a, user: {token: "12345678901234567890"}}]}`, s.URL, ca)
}

// Objects returns how many ConfigMaps were written.
func (s *Server) Objects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

// counted counts the bytes of a response, and flushes them at once.
type counted struct {
	http.ResponseWriter
	s *Server
}

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.s.Sent.Add(int64(n))
	return n, err
}

// Flush implements http.Flusher.
func (c counted) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = counted{w, s}
	w.Header().Set("Content-Type", "application/json")
	if s.attack != nil && s.attack(s, w, r) {
		s.Attacks.Add(1)
		return
	}

	configMaps := strings.HasPrefix(r.URL.Path, "/api/v1/") && strings.Contains(r.URL.Path, "/configmaps")
	switch {
	case configMaps:
		s.serveConfigMaps(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
		s.WriteNamespace(w, path.Base(r.URL.Path), "uid-of-"+s.Listener.Addr().String())
	default:
		answer, known := fixed[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		_, _ = io.WriteString(w, answer)
	}
}

// WriteNamespace answers with a namespace.
func (s *Server) WriteNamespace(w http.ResponseWriter, name, uid string) {
	_, _ = fmt.Fprintf(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": %q, "uid": %q, "resourceVersion": "1"}, "status": {"phase": "Active"}}`, name, uid)
}

const verbs = `"verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]`

// fixed are answers that are always the same.
var fixed = map[string]string{
	"/version": `{"major": "1", "minor": "34", "gitVersion": "v1.34.0"}`,
	"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis":    `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
		{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, ` + verbs + `},
		{"name": "namespaces", "kind": "Namespace", "namespaced": false, ` + verbs + `}]}`,
	"/openapi/v3":        `{"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"}}}`,
	"/openapi/v3/api/v1": `{"components": {"schemas": {}}}`,
}

// serveConfigMaps reads and writes ConfigMaps in memory.
func (s *Server) serveConfigMaps(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at := r.URL.Path
	collection := path.Base(at) == "configmaps"
	switch {
	case IsWatch(r):
		s.mu.Unlock()
		s.watch(w, r)
		return
	case collection && r.Method == http.MethodGet:
		items := []any{}
		for _, object := range s.objects {
			items = append(items, object)
		}
		s.answer(w, http.StatusOK, map[string]any{
			"kind": "ConfigMapList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
		})
	case r.Method == http.MethodPost, r.Method == http.MethodPatch:
		s.write(w, r, at)
	case s.objects[at] == nil:
		s.answer(w, http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	case r.Method == http.MethodDelete:
		s.changes("DELETED", s.objects[at])
		s.answer(w, http.StatusOK, s.objects[at])
		delete(s.objects, at)
	default:
		s.answer(w, http.StatusOK, s.objects[at])
	}

	s.mu.Unlock()
}

// write stores the object that is created or applied. s.mu is held.
func (s *Server) write(w http.ResponseWriter, r *http.Request, at string) {
	var object map[string]any
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		s.answer(w, http.StatusBadRequest, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "BadRequest", "code": 400})
		return
	}

	meta, _ := object["metadata"].(map[string]any)
	if r.Method == http.MethodPost {
		at += "/" + fmt.Sprint(meta["name"])
	}

	if r.URL.Query().Get("dryRun") == "" {
		meta["namespace"], meta["uid"] = path.Base(path.Dir(path.Dir(at))), "uid-of-"+at
		meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
		typ := "MODIFIED"
		if s.objects[at] == nil {
			typ = "ADDED"
		}
		s.objects[at] = object
		s.changes(typ, object)
	}

	s.answer(w, http.StatusCreated, object)
}

// changes adds an event. s.mu is held.
func (s *Server) changes(typ string, object map[string]any) {
	s.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	text, _ := json.Marshal(object)
	var then map[string]any
	_ = json.Unmarshal(text, &then)
	s.events = append(s.events, event{typ, then})
	close(s.changed)
	s.changed = make(chan struct{})
}

// watch streams events after a resource version, which are numbered from 101.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		s.answer(w, http.StatusBadRequest, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "BadRequest", "code": 400})
		return
	}

	next, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	next = max(next-100, 0)
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		s.mu.Lock()
		events, changed := s.events[min(next, len(s.events)):], s.changed
		next = len(s.events)
		s.mu.Unlock()
		for _, e := range events {
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

func (s *Server) answer(w http.ResponseWriter, status int, object map[string]any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object)
}

// IsWatch reports whether a request opens a watch.
func IsWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}
