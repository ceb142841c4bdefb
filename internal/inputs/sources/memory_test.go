package sources

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/quota"
)

func whole(name, version string, size int) metav1.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"text": strings.Repeat("x", size)}}}
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(version)
	return o
}

// The content of sources is bounded. A source is not watched while there is no memory for it.
func TestContentIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mebibyte = 1 << 20
		s := newStage()
		w := NewWatches(s.listen, nil)
		w.Enqueue, w.Whole, w.Memory = func(types.NamespacedName) {}, true, quota.New(16*mebibyte)
		w.Mapping = func(schema.GroupKind, string) (*meta.RESTMapping, error) {
			return &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}, nil
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = w.Start(ctx) }()
		synctest.Wait()
		user := types.NamespacedName{Namespace: "team", Name: "t"}
		a, b := Ref{Kind: KindConfigMap, Namespace: "team", Name: "a"}, Ref{Kind: KindConfigMap, Namespace: "team", Name: "b"}
		w.Use(user, []Ref{a, b})
		synctest.Wait()
		s.of("configmaps team/a").Listed([]metav1.Object{whole("a", "1", mebibyte)})
		s.of("configmaps team/b").Listed([]metav1.Object{whole("b", "1", mebibyte)})
		synctest.Wait()
		if !w.State(a).Known || w.State(b).Known || len(s.ended) != 1 {
			t.Fatalf("a is known: %t, b: %t, %d watches have ended", w.State(a).Known, w.State(b).Known, len(s.ended))
		}
		var exceeded *quota.Exceeded
		if err := w.State(b).Err; !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "the source ConfigMap team/b would take 3 MiB") {
			t.Errorf("b: %v", err)
		}
		s.of("configmaps team/b").Changed(whole("b", "2", 1)) // an event of the watch that has ended
		begun := len(s.begun)
		w.Use(user, []Ref{a, b})
		synctest.Wait()
		if len(s.begun) != begun || w.State(b).Known {
			t.Error("it is watched again, and there is no memory")
		}
		s.of("configmaps team/a").Changed(whole("a", "2", 1))
		w.Use(user, []Ref{a, b})
		synctest.Wait()
		s.of("configmaps team/b").Listed([]metav1.Object{whole("b", "1", mebibyte)})
		if !w.State(b).Known || w.State(b).Err != nil {
			t.Errorf("with memory: %+v", w.State(b).Err)
		}
		w.Use(user, nil)
		for _, ref := range []Ref{a, b} {
			if !w.Memory.Fits(ref.memory(), 3*mebibyte) {
				t.Errorf("%s still counts", ref)
			}
		}
		synctest.Wait()
	})
}

// Whole objects are listed a few at a time. An API that does not answer delays the others only
// briefly.
func TestWholeObjectsBeginInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := map[string]livestate.Listener{}
		w := NewWatches(func(ctx context.Context, sel livestate.Selection, l livestate.Listener) {
			begun[sel.Namespace+"/"+sel.Name] = l
			<-ctx.Done()
		}, nil)
		w.Enqueue, w.Whole = func(types.NamespacedName) {}, true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = w.Start(ctx) }()
		synctest.Wait()
		var many []Ref
		for _, name := range strings.Split("abcdefghij", "") {
			many = append(many, Ref{Kind: KindConfigMap, Namespace: "many", Name: name})
		}
		w.Use(types.NamespacedName{Namespace: "many", Name: "t"}, many)
		synctest.Wait()
		w.Use(types.NamespacedName{Namespace: "few", Name: "t"}, []Ref{{Kind: KindConfigMap, Namespace: "few", Name: "a"}})
		synctest.Wait()
		if len(begun) != sourcesStarting {
			t.Errorf("%d start at a time", len(begun))
		}
		for range 2 {
			for _, l := range begun {
				l.Listed(nil)
			}
			synctest.Wait()
		}
		if begun["few/a"] == nil {
			t.Error("the other namespace has no turn")
		}
	})
}
