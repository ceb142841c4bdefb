package foreign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// noon is the time at first.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ownerWatches has Owners, and the watches that they start.
type ownerWatches struct {
	Owners
	mu     sync.Mutex
	begun  map[livestate.Selection]livestate.Listener
	woken  []objects.OwnerKey
	now    time.Time
	failed error // of mappings
}

func newOwnerWatches() *ownerWatches {
	w := &ownerWatches{begun: map[livestate.Selection]livestate.Listener{}, now: noon}
	w.Listen = func(ctx context.Context, sel livestate.Selection, l livestate.Listener) {
		w.mu.Lock()
		w.begun[sel] = l
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		delete(w.begun, sel)
		w.mu.Unlock()
	}
	w.Mapping = func(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		switch gk.Kind {
		case "Unserved":
			return nil, &meta.NoKindMatchError{GroupKind: gk}
		case "Away":
			return nil, w.failed
		case "Node":
			scope = meta.RESTScopeRoot
		}
		resource := schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: strings.ToLower(gk.Kind) + "s"}
		return &meta.RESTMapping{Resource: resource, GroupVersionKind: gk.WithVersion(version), Scope: scope}, nil
	}
	w.Wake = func(key objects.OwnerKey) { w.woken = append(w.woken, key) }
	w.Now = func() time.Time { return w.now }
	return w
}

// await waits until exactly these watches are there.
func (w *ownerWatches) await(t *testing.T, want int) map[livestate.Selection]livestate.Listener {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		begun := maps.Clone(w.begun)
		w.mu.Unlock()
		if len(begun) == want && len(w.watches) == want {
			return begun
		}
	}
	t.Fatalf("%d watches, want %d", len(w.begun), want)
	return nil
}

func refTo(kind, name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(uid)}
}

func someRefs(kind, prefix string, n int) []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for i := range n {
		refs = append(refs, refTo(kind, fmt.Sprint(prefix, i), fmt.Sprint(prefix, "-uid-", i)))
	}
	return refs
}

func foreground(uid string, finalizers ...string) metav1.Object {
	return &metav1.ObjectMeta{UID: types.UID(uid), Finalizers: finalizers, DeletionTimestamp: &metav1.Time{Time: noon}}
}

// TestOwnersAreBounded: only a limited number of owners is followed for each object. Owners of one
// kind in one namespace share one watch, which ends with the last of them.
func TestOwnersAreBounded(t *testing.T) {
	t.Parallel()
	w := newOwnerWatches()
	one := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "one"}
	two := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "two"}
	elsewhere := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "other", Name: "one"}
	for i := range 20 {
		w.Follow(one, someRefs("ConfigMap", fmt.Sprint("round", i), 500))
	}
	w.await(t, 1)
	require.Equal(t, limits.ForeignOwners, len(w.followed[one]), "owners are followed")
	w.Follow(two, append(someRefs("ConfigMap", "b", 8), someRefs("Node", "n", 8)...))
	w.Follow(elsewhere, someRefs("ConfigMap", "a", 1))
	kind := w.await(t, 3)[livestate.Selection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "shop"}]

	// Objects that the watch has shown also count for keys that need them later.
	kind.Listed([]metav1.Object{foreground("b-uid-3", metav1.FinalizerDeleteDependents), foreground("c-uid-0", metav1.FinalizerDeleteDependents), foreground("b-uid-4")})
	if !slices.Equal(w.woken, []objects.OwnerKey{two}) {
		t.Errorf("woken are %v", w.woken)
	}
	if ref, _, _ := w.Follow(two, someRefs("ConfigMap", "b", 8)); ref == nil || ref.Name != "b3" {
		t.Errorf("of two, %v is deleted", ref)
	}
	three := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "three"}
	if ref, _, _ := w.Follow(three, someRefs("ConfigMap", "c", 1)); ref == nil || ref.Name != "c0" {
		t.Errorf("of three, %v is deleted", ref)
	}
	for _, key := range []objects.OwnerKey{one, two, three, elsewhere} {
		w.Follow(key, nil)
	}
	w.await(t, 0)
	if len(w.followed) > 0 {
		t.Errorf("left: %v", w.followed)
	}
}

// TestOwnersThatCannotBeWatched: they do not block anything, and are named.
func TestOwnersThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	key := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "one"}
	ofCluster := objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "one"}
	for name, tc := range map[string]struct {
		key     objects.OwnerKey
		ref     metav1.OwnerReference
		do      func(*ownerWatches, livestate.Listener)
		watches int
		problem string
		again   time.Duration
		woken   bool
	}{
		"ours":            {ref: metav1.OwnerReference{APIVersion: corev1alpha1.GroupVersion.String(), Kind: "Package", Name: "p", UID: "p"}},
		"no kind":         {ref: refTo("Unserved", "x", "x"), again: ownerRetry},
		"of no namespace": {key: ofCluster, ref: refTo("ConfigMap", "x", "x"), again: ownerRetry},
		"its API is down": {ref: refTo("Away", "x", "x"), problem: "Its owner Away x cannot be watched; a deletion of that in the foreground waits meanwhile: 503", again: ownerRetry},
		"not listed yet":  {ref: refTo("ConfigMap", "x", "x"), watches: 1, again: limits.ErrorsUnreported},
		"another's UID": {ref: refTo("ConfigMap", "x", "x"), watches: 1, do: func(_ *ownerWatches, l livestate.Listener) {
			l.Changed(foreground("y", metav1.FinalizerDeleteDependents))
		}, again: limits.ErrorsUnreported},
		"not listed":       {ref: refTo("ConfigMap", "x", "x"), watches: 1, do: func(w *ownerWatches, _ livestate.Listener) { w.now = noon.Add(limits.ErrorsUnreported) }, problem: "Its owner ConfigMap x cannot be watched; a deletion of that in the foreground waits meanwhile: its API server has not listed it within 10s"},
		"forbidden":        {ref: refTo("ConfigMap", "x", "x"), watches: 1, do: func(_ *ownerWatches, l livestate.Listener) { l.Failed(errors.New("forbidden")) }, problem: "Its owner ConfigMap x cannot be watched; a deletion of that in the foreground waits meanwhile: forbidden", woken: true},
		"listed after all": {ref: refTo("ConfigMap", "x", "x"), watches: 1, do: func(w *ownerWatches, l livestate.Listener) { w.now = noon.Add(limits.ErrorsUnreported); l.Listed(nil) }, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOwnerWatches()
			w.failed = errors.New("503")
			if tc.key == (objects.OwnerKey{}) {
				tc.key = key
			}
			w.Follow(tc.key, []metav1.OwnerReference{tc.ref})
			for _, listener := range w.await(t, tc.watches) {
				if tc.do != nil {
					tc.do(w, listener)
				}
			}
			ref, problem, again := w.Follow(tc.key, []metav1.OwnerReference{tc.ref})
			if ref != nil || problem != tc.problem || again != tc.again {
				t.Errorf("%v, %q after %s; want %q after %s", ref, problem, again, tc.problem, tc.again)
			}
			require.Equal(t, tc.woken, (len(w.woken) > 0), fmt.Sprintf("woken: %v", w.woken))
		})
	}
}
