package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// absent answers that there is no such object.
func absent(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	status := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "object").ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	_ = json.NewEncoder(w).Encode(status)
}

// answers404 are the two kinds of 404.
var answers404 = map[string]struct {
	reason string
	server http.HandlerFunc
	want   apply.Class
	gone   bool
}{
	"object": {"there is no such object", absent, apply.OK, true},
	"API":    {"its version was removed, or a proxy does not know it yet: the object can exist", http.NotFound, apply.NotServed, false},
}

// TestGone: only an answer about the object means that it no longer exists. If an existing object
// were forgotten, a teardown would remove later objects too early, or leave our reference on an
// object to keep, so that it would be deleted with its owner (invariants 4 and 6).
func TestGone(t *testing.T) {
	t.Parallel()
	for name, tc := range answers404 {
		for _, action := range []phases.Action{phases.Confirm, phases.Release, phases.Delete} {
			t.Run(name+"/"+action.String(), func(t *testing.T) {
				t.Parallel()
				s := newStep(t, tc.server, action, &objects.Observed{UID: "uid-read", ResourceVersion: "77"})
				s.run.Cluster.(*cluster.Connection).Cache = emptyCache(t)
				if err := s.do(t.Context()); apply.Classify(err) != tc.want {
					t.Errorf("%s: %v", tc.reason, err)
				}
				require.Equal(t, tc.gone, s.run.rollout.Gone(s.Key), fmt.Sprintf("%s: gone", tc.reason))
			})
		}
	}
}

// TestLookAtAbsent: only an answer about the object means that an object to create does not exist
// yet.
func TestLookAtAbsent(t *testing.T) {
	t.Parallel()
	for name, tc := range answers404 {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(tc.server)
			t.Cleanup(s.Close)
			client, err := metadata.NewForConfig(&rest.Config{Host: s.URL})
			require.NoError(t, err)
			e := &Engine{Cluster: &cluster.Connection{Metadata: client}, Tracker: tracking.New(apinames.Default)}
			mapping := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
			for _, keys := range [][]objects.Key{{keyNamed("object")}, {keyNamed("object"), keyNamed("b"), keyNamed("c")}} {
				if seen, err := e.lookUp(t.Context(), mapping, keys, ""); apply.Classify(err) != tc.want || len(seen) > 0 {
					t.Errorf("%s: %d of %d are found, %v", tc.reason, len(seen), len(keys), err)
				}
			}
		})
	}
}

// emptyCache returns a cache without watches.
func emptyCache(t *testing.T) *livestate.Cache {
	t.Helper()
	cache, err := livestate.New(livestate.Options{
		Names:       apinames.Default,
		Config:      &rest.Config{Host: "http://unused.test"},
		Observe:     func(objects.Key, *unstructured.Unstructured) *objects.Observed { return nil },
		Changed:     func(...objects.Change) {},
		KindChanged: func(schema.GroupKind) {},
	})
	require.NoError(t, err)
	return cache
}

// TestPagesByBytes: a page that is too large is requested in smaller ones, and all wanted objects
// are found.
func TestPagesByBytes(t *testing.T) {
	t.Parallel()
	const exist = 100
	annotation, asked := strings.Repeat("a", 250<<10), ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked += r.URL.Query().Get("limit") + " "
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := ""
		if from+limit < exist {
			next = strconv.Itoa(from + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q}, "items": [`, next)
		for i := from; i < min(from+limit, exist); i++ {
			_, _ = io.WriteString(w, strings.Repeat(",", min(i-from, 1))+fmt.Sprintf(`{"metadata": {"name": "%d", "uid": "u%d", "annotations": {"a": %q}}}`, i, i, annotation))
		}
		_, _ = io.WriteString(w, "]}")
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	reflector.BoundPages(config)
	client, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	e := &Engine{Cluster: &cluster.Connection{Metadata: client}, Tracker: tracking.New(apinames.Default)}
	mapping := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	var keys []objects.Key
	for i := range 20 {
		keys = append(keys, keyNamed(strconv.Itoa(i*10)))
	}
	seen, err := e.lookUp(t.Context(), mapping, keys, "")
	if err != nil || len(seen) != exist/10 || asked != "500 50 50 " {
		t.Errorf("%d found by pages of %s: %v", len(seen), asked, err)
	}
}

func keyNamed(name string) objects.Key {
	return objects.Key{Kind: "ConfigMap", Namespace: "a", Name: name}
}

// Lookups that are requested while one runs, or in the pause after it, become one lookup that
// starts after all of these requests. Groups do not wait for each other.
func TestLookupsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lookups
		var mu sync.Mutex
		var requested [][]objects.Key
		var began []time.Time
		list := func(keys []objects.Key) (found, error) {
			mu.Lock()
			requested, began = append(requested, keys), append(began, time.Now())
			mu.Unlock()
			time.Sleep(time.Second)
			all := found{}
			for _, key := range keys {
				all[key] = &objects.Observed{UID: types.UID("of " + key.Name)}
			}
			return all, nil
		}
		var wg sync.WaitGroup
		request := func(g group, name string, after time.Duration) {
			wg.Go(func() {
				time.Sleep(after)
				at := time.Now()
				got, err := l.lookup(t.Context(), g, []objects.Key{keyNamed(name)}, list)
				if err != nil || got[keyNamed(name)] == nil || got[keyNamed(name)].UID != types.UID("of "+name) {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				mu.Lock()
				defer mu.Unlock()
				i := slices.IndexFunc(requested, func(keys []objects.Key) bool { return slices.Contains(keys, keyNamed(name)) })
				if began[i].Before(at) {
					t.Errorf("%s got a lookup that started %s before its request", name, at.Sub(began[i]))
				}
			})
		}
		here, there := group{namespace: "a"}, group{namespace: "b"}
		request(here, "first", 0)
		for i, name := range []string{"second", "third", "fourth"} {
			request(here, name, time.Duration(i+1)*100*time.Millisecond)
		}
		request(there, "other", 500*time.Millisecond)
		request(here, "in the pause", time.Second+lookupPauseMax/2)
		request(here, "last", 1500*time.Millisecond)
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); took != 3*time.Second+2*lookupPauseMax || len(requested) != 4 {
			t.Errorf("%d lookups in %s, want 4 in 3 s and two pauses: %v", len(requested), took, requested)
		}
		requireIdle(t, &l)
	})
}

// requireIdle waits for the last pause, and fails if l still holds a lookup after that.
func requireIdle(t *testing.T, l *lookups) {
	t.Helper()
	time.Sleep(lookupPauseMax)
	synctest.Wait()
	if len(l.next) != 0 || len(l.running) != 0 {
		t.Errorf("%d lookups are waiting and %d are running at rest", len(l.next), len(l.running))
	}
}

// Requests that share a lookup share its error. One whose context ends delays no other.
func TestFailedLookups(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		result func() (found, error)
		failed func(error) bool
	}{
		"error": {
			result: func() (found, error) { return nil, refused },
			failed: func(err error) bool { return errors.Is(err, refused) },
		},
		"panic": {
			result: func() (found, error) { panic("a defect") },
			failed: func(err error) bool { _, ok := errors.AsType[*panics.Error](err); return ok },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l lookups
				var wg sync.WaitGroup
				list := func([]objects.Key) (found, error) { time.Sleep(time.Second); return tc.result() }
				for i := range 3 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Second / 2)
						if seen, err := l.lookup(t.Context(), group{namespace: "a"}, nil, list); !tc.failed(err) {
							t.Errorf("%d got %v, %v", i, seen, err)
						}
					})
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := l.lookup(ctx, group{namespace: "a"}, nil, list); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("after the end of its context: %v", err)
				}
				wg.Wait()
				requireIdle(t, &l)
			})
		})
	}
}
