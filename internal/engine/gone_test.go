package engine

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine/tracking"
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
				if s.run.rollout.Gone(s.Key) != tc.gone {
					t.Errorf("%s: gone is %t", tc.reason, !tc.gone)
				}
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
		Changed:     func(objects.Key, *objects.Observed) {},
		KindChanged: func(schema.GroupKind) {},
	})
	require.NoError(t, err)
	return cache
}
