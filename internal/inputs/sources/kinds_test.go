package sources

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

// TestKinds watches a source of a kind that comes, changes its resource, is unknown for a
// while, and is removed.
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
		t.Fatalf("%s was begun for %s", begun, by)
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
