package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/test/require"
)

// stage passes the listeners of watches to the test.
type stage struct {
	mu        sync.Mutex
	listeners map[string]livestate.Listener
	begun     chan string
	ended     chan string
}

func newStage() *stage {
	return &stage{listeners: map[string]livestate.Listener{}, begun: make(chan string, 10), ended: make(chan string, 10)}
}

func (s *stage) listen(ctx context.Context, sel livestate.Selection, l livestate.Listener) {
	name := sel.Resource.Resource + " " + sel.Namespace + "/" + sel.Name
	s.mu.Lock()
	s.listeners[name] = l
	s.mu.Unlock()
	s.begun <- name
	<-ctx.Done()
	s.ended <- name
}

func (s *stage) of(name string) livestate.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners[name]
}

func object(version string) metav1.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "uid", ResourceVersion: version}}
}

func TestWatches(t *testing.T) {
	t.Parallel()
	s := newStage()
	var mu sync.Mutex
	var woken []string
	w := NewWatches(s.listen, nil)
	w.Enqueue = func(key types.NamespacedName) {
		mu.Lock()
		defer mu.Unlock()
		woken = append(woken, key.Name)
	}
	takeWoken := func() string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(woken)
		defer func() { woken = nil }()
		return fmt.Sprint(woken)
	}
	a, b := types.NamespacedName{Namespace: "team", Name: "a"}, types.NamespacedName{Namespace: "team", Name: "b"}
	secret, other := Ref{Kind: KindSecret, Namespace: "team", Name: "s"}, Ref{Kind: KindConfigMap, Namespace: "team", Name: "c"}

	w.Use(a, []Ref{secret}) // before the watches start
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = w.Start(ctx) }()
	if got := <-s.begun; got != "secrets team/s" {
		t.Fatalf("watched: %s", got)
	}
	w.Use(b, []Ref{other, secret})
	if got := <-s.begun; got != "configmaps team/c" {
		t.Fatalf("watched: %s", got)
	}
	l := s.of("secrets team/s")
	if w.State(secret).Known {
		t.Error("known before it was listed")
	}
	for _, tc := range []struct {
		reason string
		do     func()
		want   State
		woken  string
	}{
		{"there is none", func() { l.Listed(nil) }, State{Known: true}, "[a b]"},
		{"it appears", func() { l.Changed(object("1")) }, State{Known: true, Version: "uid/1"}, "[a b]"},
		{"the same again", func() { l.Listed([]metav1.Object{object("1")}) }, State{Known: true, Version: "uid/1"}, "[]"},
		{"it changes", func() { l.Changed(object("2")) }, State{Known: true, Version: "uid/2"}, "[a b]"},
		{"it is deleted", func() { l.Deleted(object("2")) }, State{Known: true}, "[a b]"},
	} {
		tc.do()
		require.Equal(t, tc.want, w.State(secret), tc.reason)
		require.Equal(t, tc.woken, takeWoken(), tc.reason)
	}
	l.Failed(errors.New("forbidden"))
	if state := w.State(secret); state.Err == nil || takeWoken() != "[a b]" {
		t.Errorf("a failure: %+v", state)
	}

	w.Use(a, nil)
	l.Changed(object("3"))
	require.Equal(t, "[b]", takeWoken(), "are woken after a has left")
	w.Use(b, []Ref{other})
	require.Equal(t, "secrets team/s", <-s.ended, "ended")
	if w.State(secret).Known {
		t.Error("an unused source is still known")
	}
}

// TestKinds watches a source whose kind appears, changes its resource, is unknown for a while, and
// is removed.
func TestKinds(t *testing.T) {
	t.Parallel()
	gk := schema.GroupKind{Group: "example.com", Kind: "Gauge"}
	ref := Ref{Group: gk.Group, Version: "v1", Kind: gk.Kind, Namespace: "team", Name: "x"}
	var mu sync.Mutex
	resource, failure := "", error(&meta.NoKindMatchError{GroupKind: gk})
	serve := func(name string, err error) { mu.Lock(); defer mu.Unlock(); resource, failure = name, err }
	woken := make(chan types.NamespacedName, 10)
	s := newStage()
	w := NewWatches(s.listen, nil)
	w.Whole, w.Enqueue = true, func(key types.NamespacedName) { woken <- key }
	w.Mapping = func(schema.GroupKind, string) (*meta.RESTMapping, error) {
		mu.Lock()
		defer mu.Unlock()
		return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: gk.Group, Version: "v1", Resource: resource}}, failure
	}
	go func() { _ = w.Start(t.Context()) }()
	user := types.NamespacedName{Namespace: "team", Name: "t"}
	for w.Use(user, []Ref{ref}); !w.State(ref).Unserved; w.Use(user, []Ref{ref}) { // once it has started
	}

	serve("gauges", nil)
	w.KindChanged(schema.GroupKind{Kind: "Other"})
	w.KindChanged(gk)
	if begun, by := <-s.begun, <-woken; begun != "gauges team/x" || by != user {
		t.Fatalf("%s was started for %s", begun, by)
	}
	live := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"uid": "u", "resourceVersion": "1", "managedFields": []any{map[string]any{"manager": "m"}}}, "spec": map[string]any{"a": "b"},
	}}
	first := s.of("gauges team/x")
	first.Listed([]metav1.Object{live})
	<-woken
	if got, want := w.State(ref).Content, `{"metadata":{"resourceVersion":"1","uid":"u"},"spec":{"a":"b"}}`; got != want {
		t.Errorf("the content is %s", got)
	}
	if _, kept := live.Object["metadata"].(map[string]any)["managedFields"]; !kept {
		t.Error("the object of the watch was changed")
	}

	serve("", livestate.ErrNotReady)
	w.KindChanged(gk)
	if state := w.State(ref); !state.Known || state.Err != nil {
		t.Errorf("while discovery fails, the state is %+v", state)
	}
	serve("meters", nil)
	w.KindChanged(gk)
	if begun, ended := <-s.begun, <-s.ended; begun != "meters team/x" || ended != "gauges team/x" {
		t.Errorf("begun %s, ended %s", begun, ended)
	}
	<-woken
	first.Changed(live)
	if state := w.State(ref); state.Known || state.Content != "" {
		t.Errorf("a watch that was replaced has set %+v", state)
	}
	serve("", &meta.NoKindMatchError{GroupKind: gk})
	w.KindChanged(gk)
	<-woken
	if ended, state := <-s.ended, w.State(ref); ended != "meters team/x" || !state.Unserved || state.Known {
		t.Errorf("ended %s, the state is %+v", ended, state)
	}
}
