package objectdeployments

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/test/require"
)

var thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}

// TestScopeIsThatOfTheMapping: a mapping has both the served version and the scope of a kind. An
// API server with another scope in another version shows where the scope comes from.
func TestScopeIsThatOfTheMapping(t *testing.T) {
	t.Parallel()
	r := &Target{Engine: &engine.Engine{Cluster: liveOf(t, servesThings)}}
	for version, want := range map[string]struct{ namespaced, known bool }{
		"v1": {false, true}, "v1beta1": {true, true}, "": {false, true}, "v2": {false, false},
	} {
		namespaced, known := r.namespaced(thing, version)
		if namespaced != want.namespaced || known != want.known {
			t.Errorf("version %q: namespaced: %t, known: %t, want %+v", version, namespaced, known, want)
		}
	}
}

// TestReloadedRevisionIsClaimed: if a revision turns out to have an object that it lacked when the
// claims were restored, the object is claimed before it is written. If another owner has it by
// then, the revision writes nothing more (invariant 10).
func TestReloadedRevisionIsClaimed(t *testing.T) {
	t.Parallel()
	inSlice := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	ofCluster := objects.Key{Group: thing.Group, Kind: thing.Kind, Name: "t"}
	for name, tc := range map[string]struct {
		reason string
		// takes are the objects that another owner takes meanwhile, as a successor or not; lost
		// means that it had them from the start.
		takes           []objects.Key
		successor, lost bool
		claimed         bool
	}{
		"free":                 {reason: "no other owner has it", claimed: true},
		"a slice comes back":   {reason: "another has an object of it", takes: []objects.Key{inSlice}},
		"a scope is learned":   {reason: "another has the object of that name", takes: []objects.Key{ofCluster}},
		"denied at the start":  {reason: "another was first", takes: []objects.Key{inSlice}, lost: true},
		"handed over":          {reason: "its successor has it", takes: []objects.Key{inSlice, ofCluster}, successor: true, claimed: true},
		"denied, and free now": {reason: "no other owner has it any more", lost: true, claimed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &corev1alpha1.ClusterObjectSet{ObjectMeta: metav1.ObjectMeta{Name: "shop-1", UID: "set"}}
			set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
				Name: "one", Slices: []string{"a"}, Objects: stored(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"namespace": "shop", "name": "t"}}`),
			}}
			set.Status.Phases = []corev1alpha1.PhaseStatus{{State: corev1alpha1.PhaseStateReady}}
			conditions.Set(&set.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			var woken []objects.Owner
			s := reconciliationOf(server, server)
			s.scope, s.sets, s.current = corev1alpha1.ScopeCluster, []corev1alpha1.GenericObjectSet{set}, set
			s.Now, s.rollout.Claims = func() time.Time { return now }, claims.NewTable(func(h objects.Owner) { woken = append(woken, h) })
			s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {})
			other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "other"}, UID: "other"}
			load := func() *engine.Revision {
				t.Helper()
				require.NoError(t, s.loadSets(t.Context()))
				return s.revisionOf(set)
			}
			take := func(keys ...objects.Key) {
				t.Helper()
				require.NoError(t, s.rollout.Claims.Claim(other, keys))
			}

			atStart := load()
			if !atStart.Incomplete() || !atStart.Claimed() {
				t.Fatalf("the revision is to be incomplete and claimed: %+v", atStart.Revision)
			}
			if tc.lost {
				take(atStart.Keys()...)
			}
			s.restoreClaim(atStart, set)
			if atStart.ClaimLost() != tc.lost {
				t.Fatalf("the claim is lost at the start: %t, want %t", atStart.ClaimLost(), tc.lost)
			}
			s.restored = true
			s.rollout.Claims.Release(other)
			take(tc.takes...)
			if tc.successor {
				s.rollout.Controllers.Successors = sets.New[types.UID]("other")
			}
			slice := &corev1alpha1.ClusterObjectSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			slice.Objects = stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "c"}}`)
			require.NoError(t, server.Create(t.Context(), slice))
			now, s.Target.Cluster = now.Add(missingRetry), liveOf(t, servesThings)

			rev := load()
			if rev.Incomplete() || !slices.Equal(rev.Keys(), []objects.Key{ofCluster, inSlice}) {
				t.Fatalf("the revision has %v", rev.Keys())
			}
			if rev.Claimed() != tc.claimed || rev.ClaimLost() == tc.claimed {
				t.Errorf("claimed: %t, lost: %t, but %s", rev.Claimed(), rev.ClaimLost(), tc.reason)
			}
			if !rev.Phases[0].WrittenBefore() {
				t.Error("the write of the phase before this process started is forgotten")
			}
			for _, key := range rev.Keys() {
				holder, held := s.rollout.Claims.Holder(key)
				if theirs := slices.Contains(tc.takes, key); theirs && holder != other || tc.claimed && !theirs && holder != s.rollout.Owner {
					t.Errorf("%s is held (%t) by %s", key, held, holder)
				}
			}
			if tc.claimed {
				return
			}
			if err := s.Target.Claim(t.Context(), s.rollout, rev); err != nil || !rev.Refused() || !strings.Contains(rev.Blocked(), "belongs to "+other.String()) {
				t.Errorf("refused: %t, %q, error %v; want the winner named", rev.Refused(), rev.Blocked(), err)
			}
			if s.rollout.Claims.Release(other); !slices.Contains(woken, s.rollout.Owner) {
				t.Error("no owner is notified that the objects are free")
			}
		})
	}
}

func stored(raw string) []corev1alpha1.ObjectSetObject {
	return []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(raw)}}}
}

// servesThings are the answers of an API server that serves ConfigMaps, and things in two versions:
// a preferred cluster-scoped one, and a namespaced one.
var servesThings = map[string]string{
	"/version": `{"gitVersion": "v1.34.0"}`,
	"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/api/v1":  `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}]}`,
	"/apis": `{"kind": "APIGroupList", "groups": [{"name": "example.com", "preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"},
		"versions": [{"groupVersion": "example.com/v1", "version": "v1"}, {"groupVersion": "example.com/v1beta1", "version": "v1beta1"}]}]}`,
	"/apis/example.com/v1":      `{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [{"name": "things", "kind": "Thing", "namespaced": false}]}`,
	"/apis/example.com/v1beta1": `{"kind": "APIResourceList", "groupVersion": "example.com/v1beta1", "resources": [{"name": "things", "kind": "Thing", "namespaced": true}]}`,
}

// liveOf returns a connection to an API server that gives these answers, once it has
// discovered things.
func liveOf(t *testing.T, answers map[string]string) *cluster.Connection {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer, ok := answers[req.URL.Path]
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	changed := make(chan struct{}, 1)
	live := unstarted(t, server.URL, func(schema.GroupKind) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	live.Use("test", []schema.GroupKind{thing})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = live.Start(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	for known := false; !known; {
		<-changed
		_, err := live.Mapping(thing, "")
		known = err == nil
	}
	return live
}

// unstarted returns a connection that does not know yet whether any kind is served.
func unstarted(t *testing.T, host string, changed func(schema.GroupKind)) *cluster.Connection {
	t.Helper()
	live, err := livestate.New(livestate.Options{
		Names:   apinames.Default,
		Config:  &rest.Config{Host: host},
		Observe: func(objects.Key, *unstructured.Unstructured) *objects.Observed { return nil },
		Changed: func(objects.Key, *objects.Observed) {}, KindChanged: changed,
	})
	require.NoError(t, err)
	return &cluster.Connection{Cache: live}
}
