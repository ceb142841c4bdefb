package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// refuser is an API server that notes each request, shows one object, and refuses
// every write of it as if it had changed in between.
type refuser struct {
	mu       sync.Mutex
	requests []*sent
}

// sent is one request.
type sent struct {
	Method, Query string
	Body          []byte
}

const shown = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"object","uid":"uid-read","resourceVersion":"77",
	"labels":{"package-operator.run/cache":"True"},"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"shop","uid":"us","controller":true}]}}`

func (r *refuser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.requests = append(r.requests, &sent{req.Method, req.URL.RawQuery, body})
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if req.Method == http.MethodGet {
		_, _ = io.WriteString(w, shown)
		return
	}
	w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
}

// writes returns the requests that would change something.
func (r *refuser) writes() []*sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	var writes []*sent
	for _, s := range r.requests {
		if s.Method != http.MethodGet && !strings.Contains(s.Query, "dryRun=All") {
			writes = append(writes, s)
		}
	}
	return writes
}

// newStep returns a step on an object of the deployment shop against a server.
func newStep(t *testing.T, server http.Handler, action phases.Action, live *objects.Observed) *step {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	writer, err := apply.NewWriter(&rest.Config{Host: s.URL}, apinames.Default.FieldManager)
	require.NoError(t, err)
	tracker := tracking.New(apinames.Default)
	tracker.Wake = func(objects.OwnerKey) {}
	key := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "object"}
	r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "us"})
	mapping := &meta.RESTMapping{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Scope: meta.RESTScopeNamespace,
	}
	one := phases.Step{Action: action, Key: key, Live: live}
	if action < phases.Delete {
		one.Desired = &objects.Desired{
			Key: key, Version: "v1", Content: objects.Digest{1},
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object"},"data":{"value":"1"}}`),
		}
		one.Metadata.Owner = r.Owner
	}
	executor := &Engine{
		Tracker: tracker, Cluster: &cluster.Connection{Writer: writer},
	}
	return &step{Step: one, run: &run{Engine: executor, rollout: r}, mapping: mapping}
}

// guards are the preconditions of a write: the state that it was decided on.
type guards struct{ UID, ResourceVersion string }

// guardsOf reads the guards of a request, in whichever form it has them.
func guardsOf(t *testing.T, s *sent) guards {
	t.Helper()
	var body any
	if err := json.Unmarshal(s.Body, &body); err != nil {
		t.Fatalf("%s %s: %v", s.Method, s.Body, err)
	}
	get := func(from any, keys ...string) string {
		for _, key := range keys {
			fields, _ := from.(map[string]any)
			from = fields[key]
		}
		text, _ := from.(string)
		return text
	}
	var g guards
	switch body := body.(type) {
	case map[string]any:
		part := "metadata"
		if s.Method == http.MethodDelete {
			part = "preconditions"
		}
		g = guards{get(body, part, "uid"), get(body, part, "resourceVersion")}
	case []any:
		for _, op := range body {
			switch get(op, "op") + get(op, "path") {
			case "test/metadata/uid":
				g.UID = get(op, "value")
			case "test/metadata/resourceVersion":
				g.ResourceVersion = get(op, "value")
			}
		}
	}
	return g
}

// TestEveryWriteIsGuarded: each write names the very state that it was decided on, so
// that it cannot hit a later change of another client.
func TestEveryWriteIsGuarded(t *testing.T) {
	t.Parallel()
	controlledBy := func(uid types.UID) *objects.Observed {
		return &objects.Observed{UID: "uid-seen", ResourceVersion: "42", Owners: apinames.Default.References([]metav1.OwnerReference{{
			APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSet", Name: "x", UID: uid, Controller: ptr.To(true),
		}}, nil)}
	}
	seen := guards{"uid-seen", "42"}
	terminating := controlledBy("us")
	terminating.Terminating = true
	for _, tc := range []struct {
		action phases.Action
		live   *objects.Observed
		want   guards
		reason string
	}{
		{phases.Create, nil, guards{ResourceVersion: apply.AbsentVersion}, "it can only create, and never merges"},
		{phases.Create, nil, guards{}, "a POST can only create"},
		{phases.Change, controlledBy("us"), seen, "an apply of the state that was dry-run"},
		{phases.Correct, controlledBy("us"), seen, "drift of the state that was judged"},
		{phases.Relabel, controlledBy("us"), seen, "labels come last, and are a write like any other"},
		{phases.Adopt, controlledBy("other"), seen, "only a state that the collision rules saw is taken over"},
		{phases.Delete, controlledBy("us"), seen, "another owner can have taken it over since"},
		{phases.Delete, terminating, seen, "the garbage collector does not release it"},
		{phases.Release, controlledBy("us"), guards{"uid-read", "77"}, "references are taken off the object that was just read"},
	} {
		t.Run(tc.action.String(), func(t *testing.T) {
			t.Parallel()
			server := &refuser{}
			one := newStep(t, server, tc.action, tc.live)
			one.applied = tc.want != guards{}
			err := one.do(t.Context())
			if apply.Classify(err) != apply.Conflict {
				t.Fatalf("the server refused the write, and the step reports: %v", err)
			}
			writes := server.writes()
			if len(writes) != 1 {
				t.Fatalf("%d writes, want 1", len(writes))
			}
			require.Equal(t, (tc.want == guards{}), writes[0].Method == http.MethodPost, fmt.Sprintf("%s: the write is a %s", tc.reason, writes[0].Method))
			require.Equal(t, tc.want, guardsOf(t, writes[0]), fmt.Sprintf("%s: the guards of %s", tc.reason, writes[0].Body))
		})
	}
}

// TestRefusedWithoutARace: a conflict about an unchanged object is not a lost race. The write is
// repeated after a pause, and not at once forever, because a webhook can refuse with any code.
func TestRefusedWithoutARace(t *testing.T) {
	t.Parallel()
	for version, pauses := range map[string]bool{"76": false, "77": true} {
		one := newStep(t, &refuser{}, phases.Delete, &objects.Observed{UID: "uid-read", ResourceVersion: version})
		one.run.Cluster.(*cluster.Connection).Cache = emptyCache(t)
		require.NoError(t, one.recover(t.Context(), one.do(t.Context())))
		require.Equal(t, pauses, one.run.rollout.applied.At(one.Key).Failure != nil)
	}
}

// TestTakenBeforeItsRelease: an object that has another controller by the time of its release is
// left alone.
func TestTakenBeforeItsRelease(t *testing.T) {
	t.Parallel()
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object","namespace":"n","uid":"u","resourceVersion":"77",
			"annotations":{"package-operator.run/revision":"1"},"labels":{"package-operator.run/instance":"another"},
			"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"other","controller":true}]}}`)
	})
	one := newStep(t, server, phases.Release, &objects.Observed{UID: "u", ResourceVersion: "42"})
	if err := one.do(t.Context()); err != nil || one.run.rollout.Gone(one.Key) {
		t.Errorf("gone %t, %v", one.run.rollout.Gone(one.Key), err)
	}
}

// TestLostAnswer: a write whose answer is lost can have taken effect. An object that was absent
// before no longer counts as absent, so that a teardown looks for it (invariant 4).
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	lost := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s := newStep(t, lost, phases.Create, nil)
	s.run.rollout.applied.At(s.Key).Gone = true
	if err := s.do(t.Context()); apply.Classify(err) != apply.Retry {
		t.Fatalf("the answer is lost, and the step reports: %v", err)
	}
	if s.run.rollout.Gone(s.Key) {
		t.Error("the object still counts as absent")
	}
}

// TestLostAnswerOfAChange: the object can already have the new content, with a field that the
// former one does not have. So it is no longer known to have the former one.
func TestLostAnswerOfAChange(t *testing.T) {
	t.Parallel()
	lost := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s := newStep(t, lost, phases.Change, &objects.Observed{UID: "uid", ResourceVersion: "1", Wrote: true})
	former := objects.Digest{2}
	rec := s.run.rollout.applied.At(s.Key)
	rec.Content, rec.UID = former, s.Live.UID
	if err := s.do(t.Context()); apply.Classify(err) != apply.Retry {
		t.Fatalf("the answer is lost, and the step reports: %v", err)
	}
	if rec.Content == former || rec.Content == s.Desired.Content || rec.Content.IsZero() {
		t.Errorf("the object counts as one of content %x", rec.Content)
	}
}
