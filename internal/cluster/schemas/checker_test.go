package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

// server answers like an API server, from memory.
type server struct {
	mu        sync.Mutex
	documents map[string][]byte // by path of the group version
	requests  []string
	status    int // of documents; 0 is 200
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{documents: map[string][]byte{}}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		path := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".json"), "__", "/")
		s.documents[path] = text
	}
	return s
}

func (s *server) checker(t testing.TB) *Checker {
	t.Helper()
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: "http://api.example/base", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	require.NoError(t, err)
	return New(client)
}

func (s *server) url(path string) string {
	return fmt.Sprintf("/openapi/v3/%s?hash=%x", path, len(s.documents[path]))
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(request.URL.Path, "/base")
	s.requests = append(s.requests, path)
	status, body := http.StatusNotFound, []byte("not found")
	gv := strings.TrimPrefix(path, "/openapi/v3/")
	switch {
	case path == "/openapi/v3":
		paths := map[string]any{}
		for name := range s.documents {
			paths[name] = map[string]string{"serverRelativeURL": s.url(name)}
		}
		body, _ = json.Marshal(map[string]any{"paths": paths})
		status = http.StatusOK
	case s.documents[gv] != nil && request.URL.RawQuery == strings.SplitN(s.url(gv), "?", 2)[1]:
		body, status = s.documents[gv], http.StatusOK
		if s.status != 0 {
			body, status = []byte("broken"), s.status
		}
	}
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)), Request: request,
		Header: http.Header{"Content-Type": []string{"application/json"}},
	}, nil
}

// asked returns the requests since the last call.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.requests
	s.requests = nil
	return asked
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {a.b/c: d}, annotations: {x: "y"}, ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u, controller: true}]}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - name: web
        image: web:1
        args: [a, b]
        env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        resources: {limits: {cpu: 1, memory: 1Gi}}
        ports: [{containerPort: 80}]
        readinessProbe: {httpGet: {port: http, path: /}}
`

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec:
  port: http
  free: {a: {b: [1, {c: d}]}}
  partly: {known: x, unknown: {a: 1}}
  anything: [1, {a: b}]
  template: {apiVersion: v1, kind: Pod, metadata: {labels: {a: b}}, spec: {x: 1}}
  parts: [{name: a, weight: 0.5, enabled: true}, {name: b, weight: 1}]
  tags: [a, b]
  limits: {cpu: "1"}
`

func TestCheck(t *testing.T) {
	t.Parallel()
	replace := func(text, from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("no %q to replace", from)
		}
		return strings.Replace(text, from, to, 1)
	}
	tests := []struct {
		reason string
		object string
		want   string
	}{
		{"a Deployment", deployment, ""},
		{"a ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}`, ""},
		{"a custom resource", widget, ""},
		{"a required field is the server's", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}`, ""},
		{"a number for int or string", replace(widget, "port: http", "port: 80"), ""},
		{"a group version that is not described", `{apiVersion: other.example/v1, kind: Deployment, spec: 1}`, ""},
		{"a kind that is not described", `{apiVersion: apps/v1, kind: Other, spec: 1}`, ""},

		{"an unknown field", replace(deployment, "replicas: 2", "replicaz: 2"),
			`.spec.replicaz: field not declared in schema, did you mean "replicas"?`},
		{"another case", replace(deployment, "image: web:1", "Image: web:1"),
			`.spec.template.spec.containers[name="web"].Image: field not declared in schema, did you mean "image"?`},
		{"an unknown field like no other", replace(deployment, "replicas: 2", "somethingElse: 2"),
			`.spec.somethingElse: field not declared in schema`},
		{"an unknown field of metadata", replace(deployment, "labels: {a.b/c: d}", "label: {a: b}"),
			`.metadata.label: field not declared in schema, did you mean "labels"?`},
		{"an unknown field at the root", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, daat: {a: b}}`,
			`.daat: field not declared in schema, did you mean "data"?`},
		{"a wrong type", replace(deployment, "replicas: 2", `replicas: "2"`), `.spec.replicas: expected numeric (int or float)`},
		{"a map for a list", replace(deployment, "args: [a, b]", "args: {a: b}"),
			`.spec.template.spec.containers[name="web"].args: expected list`},
		{"a list for a map", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: [a]}`, `.data: expected map`},
		{"the value of a Secret is not quoted", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: 12345}}`,
			`.stringData.a: expected string`},
		{"a key twice", replace(deployment, "{name: B, valueFrom", "{name: A, valueFrom"),
			`.spec.template.spec.containers[name="web"].env: duplicate entries for key [name="A"]`},
		{"all at once, sorted", `{apiVersion: example.com/v1, kind: Widget, spec: {size: a, parts: [{name: b, waight: 1}], limit: {a: b}, template: {metadata: {lables: {}}}}}`,
			`.spec.limit: field not declared in schema, did you mean "limits"?; ` +
				`.spec.parts[name="b"].waight: field not declared in schema, did you mean "weight"?; ` +
				`.spec.size: expected numeric (int or float); ` +
				`.spec.template.metadata.lables: field not declared in schema, did you mean "labels"?`},
	}
	checker := newServer(t).checker(t)
	var objs []*unstructured.Unstructured
	for _, test := range tests {
		objs = append(objs, yamltest.Object(t, test.object))
	}
	errs := checker.Check(context.Background(), objs)
	if len(errs) != len(objs) {
		t.Fatalf("%d errors for %d objects", len(errs), len(objs))
	}
	for i, test := range tests {
		var got string
		if errs[i] != nil {
			got = errs[i].Error()
			var invalid *InvalidError
			if !errors.As(errs[i], &invalid) {
				t.Errorf("%s: the error is a %T", test.reason, errs[i])
			}
		}
		require.Equal(t, test.want, got, test.reason)
		require.Equal(t, yamltest.Object(t, test.object).Object, objs[i].Object, fmt.Sprintf("%s: Check changed the object", test.reason))
	}
}

func TestCheckBoundsFields(t *testing.T) {
	t.Parallel()
	obj := yamltest.Object(t, deployment)
	spec := obj.Object["spec"].(map[string]any)
	for i := range schemaErrors + 5 {
		spec[fmt.Sprintf("x%02d", i)] = "x"
	}
	err := newServer(t).checker(t).Check(context.Background(), []*unstructured.Unstructured{obj})[0]
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Fields) != schemaErrors || invalid.More != 5 {
		t.Errorf("Check = %v", err)
	}
	if !strings.HasSuffix(err.Error(), "; and 5 more") {
		t.Errorf("Check = %v, want the number of the others", err)
	}
}

func TestCheckReadsOnce(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	checker := server.checker(t)
	good := []*unstructured.Unstructured{yamltest.Object(t, deployment), yamltest.Object(t, widget), yamltest.Object(t, deployment)}
	expect := func(reason string, want ...string) {
		t.Helper()
		require.Equal(t, want, server.asked(), fmt.Sprintf("%s: requests", reason))
	}
	checker.Check(context.Background(), nil)
	expect("an empty object")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { checker.Check(context.Background(), good[:1]) })
	}
	group.Wait()
	documents := 0
	for _, path := range server.asked() {
		if path == "/openapi/v3/apis/apps/v1" {
			documents++
		}
	}
	require.Equal(t, 1, documents, "concurrent checks read the document")
	for _, err := range checker.Check(context.Background(), good) {
		if err != nil {
			t.Error(err)
		}
	}
	expect("another group version", "/openapi/v3/apis/example.com/v1")
	checker.Check(context.Background(), good)
	expect("the same")
	checker.Refresh()
	checker.Check(context.Background(), good)
	expect("refreshed, the same hashes", "/openapi/v3")
}

// TestCheckAfterChange is about a CRD that gets a field in an earlier phase.
func TestCheckAfterChange(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	checker := server.checker(t)
	before, after := yamltest.Object(t, widget), yamltest.Object(t, strings.Replace(widget, "port: http", "colour: red", 1))
	check := func(obj *unstructured.Unstructured) error {
		return checker.Check(context.Background(), []*unstructured.Unstructured{obj})[0]
	}
	require.NoError(t, check(before))
	if err := check(after); err == nil {
		t.Fatal("the field is not known yet, and is not refused")
	}
	const path = "apis/example.com/v1"
	server.mu.Lock()
	server.documents[path] = bytes.Replace(server.documents[path], []byte(`"tags": {`), []byte(`"colour": {"type": "string"}, "tags": {`), 1)
	server.mu.Unlock()
	if err := check(after); err != nil {
		t.Errorf("the field is declared now: %v", err)
	}
	server.mu.Lock()
	delete(server.documents, path)
	server.mu.Unlock()
	checker.Refresh()
	if err := check(yamltest.Object(t, strings.Replace(widget, "port: http", "color: red", 1))); err != nil {
		t.Errorf("the kind is not served any more, yet checked: %v", err)
	}
}

// A caller waits for the document that another one reads no longer than its own context, and takes
// it when it is there.
func TestWaitForADocument(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.checker(t)
	index, _, err := c.currentIndex(t.Context())
	require.NoError(t, err)
	gv := schema.GroupVersion{Group: "apps", Version: "v1"}
	s.mu.Lock() // the server does not answer
	first := make(chan error, 1)
	go func() {
		_, err := c.load(t.Context(), index, gv)
		first <- err
	}()
	loading := func() bool {
		d := c.document(index.of(gv).ServerRelativeURL())
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.loading != nil
	}
	for !loading() {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var unavailable *UnavailableError
	if _, err := c.load(ctx, index, gv); !errors.As(err, &unavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waited for another caller: %v", err)
	}
	s.mu.Unlock()
	if err := <-first; err != nil {
		t.Error(err)
	}
	s.asked()
	if d, err := c.load(t.Context(), index, gv); err != nil || d.content == nil || len(s.asked()) > 0 {
		t.Errorf("read again: %v, %v", d, err)
	}
}

func TestCheckUnavailable(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.status = http.StatusServiceUnavailable
	checker := server.checker(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var unavailable *UnavailableError
	if err := checker.Check(ctx, []*unstructured.Unstructured{yamltest.Object(t, deployment)})[0]; !errors.As(err, &unavailable) {
		t.Errorf("Check with a cancelled context = %v, want an UnavailableError", err)
	}
	if unavailable != nil && unavailable.GroupVersion != (schema.GroupVersion{Group: "apps", Version: "v1"}) {
		t.Errorf("the error is about %s", unavailable.GroupVersion)
	}
}

func TestCheckLimits(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.documents["apis/apps/v1"] = bytes.Repeat([]byte(" "), limits.SchemaDocumentBytes+1)
	err := server.checker(t).Check(context.Background(), []*unstructured.Unstructured{yamltest.Object(t, deployment)})[0]
	if want := fmt.Sprintf("limit of %d bytes", limits.SchemaDocumentBytes); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check = %v, want %q", err, want)
	}
}

func TestReleasesWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t)
		checker := server.checker(t)
		objs := []*unstructured.Unstructured{yamltest.Object(t, deployment), yamltest.Object(t, widget)}
		checker.Check(t.Context(), objs)
		time.Sleep(schemaIdle - time.Second)
		synctest.Wait()
		checker.Check(t.Context(), objs[:1])
		held := func() (documents int, index bool) {
			synctest.Wait()
			checker.mu.Lock()
			defer checker.mu.Unlock()
			return len(checker.documents), checker.index != nil
		}
		time.Sleep(2 * time.Second)
		if documents, _ := held(); documents != 1 {
			t.Errorf("%d documents are held, want the one that was used", documents)
		}
		time.Sleep(2 * schemaIdle)
		if documents, index := held(); documents != 0 || index {
			t.Errorf("%d documents are held at rest, index %t", documents, index)
		}
		server.asked()
		if err := checker.Check(t.Context(), objs)[0]; err != nil {
			t.Error(err)
		}
		require.Equal(t, 3, len(server.asked()), "requests after a release")
		time.Sleep(3 * schemaIdle)
	})
}

func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	checker := newServer(t).checker(t)
	for i := range 2 * schemaDocuments {
		checker.document(fmt.Sprint(i))
	}
	if len(checker.documents) != schemaDocuments {
		t.Errorf("%d documents are held", len(checker.documents))
	}
	if _, held := checker.documents[fmt.Sprint(2*schemaDocuments-1)]; !held {
		t.Error("the newest document is not held")
	}
}

func TestSplitPath(t *testing.T) {
	t.Parallel()
	element := func(text string) step { return step{element: text, isElement: true} }
	for path, want := range map[string][]step{
		".a":                        {{field: "a"}},
		".a.b[0].c":                 {{field: "a"}, {field: "b"}, element("0"), {field: "c"}},
		`.a[name="x].y",b="\"z"].c`: {{field: "a"}, element(`name="x].y",b="\"z"`), {field: "c"}},
		`.a[="x"]`:                  {{field: "a"}, element(`="x"`)},
		"":                          nil,
		"a":                         nil,
		".a[":                       nil,
	} {
		if diff := cmp.Diff(want, splitPath(path), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("splitPath(%q) (-want +got):\n%s", path, diff)
		}
	}
}

// Documents are counted while they are kept: their text, and the decoded form once more.
func TestDocumentsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t)
		checker := server.checker(t)
		var held atomic.Int64
		checker.held = func(bytes int64) { held.Add(bytes) }
		var text int64
		for _, gv := range []string{"apis/apps/v1", "apis/example.com/v1"} {
			definitions, err := definitionsOf(server.documents[gv])
			require.NoError(t, err)
			text += sizeOf(definitions)
			_, err = checker.MissingFields(t.Context(), schema.GroupVersionKind{Group: strings.Split(gv, "/")[1], Version: "v1"}, []string{"spec"})
			require.NoError(t, err)
		}
		require.Equal(t, text, held.Load(), fmt.Sprintf("bytes are counted of documents of %d", text))
		for range 2 {
			checker.Check(t.Context(), []*unstructured.Unstructured{yamltest.Object(t, deployment), yamltest.Object(t, widget)})
			if got := held.Load(); got <= text || got > 2*text {
				t.Errorf("%d bytes are counted once kinds are decoded, of documents of %d", got, text)
			}
		}
		time.Sleep(time.Second)
		for i := range 2 * schemaDocuments {
			checker.document(fmt.Sprint(i)) // which are never loaded
		}
		require.Equal(t, int64(0), held.Load(), "bytes are counted of documents that others took the place of")
		checker.Check(t.Context(), []*unstructured.Unstructured{yamltest.Object(t, deployment)})
		time.Sleep(3 * schemaIdle)
		synctest.Wait()
		require.Equal(t, int64(0), held.Load(), "bytes are counted at rest")
	})
}
