package objectdeployments

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/properties"
	"lockstep.run/lockstep/test/require"
)

// TestMain checks 200 cases of each property, and 2,000 in the deep sweep.
func TestMain(m *testing.M) {
	checks := 200
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		checks = 2000
	}
	properties.Main(m, checks)
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}

// scheme has the kinds of the in-memory API servers.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := errors.Join(corev1alpha1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		panic(err)
	}
	return s
}()

// newServer makes an in-memory API server that finds sets by their owners.
func newServer() *fake.ClientBuilder {
	index := func(set client.Object) []string {
		return []string{objectsets.OwnerOf(set.(corev1alpha1.GenericObjectSet)).String()}
	}
	return fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, index).WithIndex(&corev1alpha1.ClusterObjectSet{}, ownerIndex, index)
}

// setOf returns a set of the deployment shop whose one phase is in a Secret.
func setOf(name string, archived bool, secrets ...string) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: "deployment", Controller: ptr.To(true),
		}},
	}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", SecretSlices: secrets}}
	if archived {
		conditions.Set(&set.Status.Conditions, 0, corev1alpha1.ConditionArchived, true, corev1alpha1.ReasonArchived, "")
	}
	return set
}

// reconciliationOf returns a reconcile of a deployment with one phase.
func reconciliationOf(c client.Client, reader client.Reader) *reconciliation {
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "deployment"}}
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one"}}
	key := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}
	home := Home{Client: c, Reader: reader, Events: events.NewFakeRecorder(10), Now: time.Now}
	r := New(home, &engine.Engine{Cluster: &cluster.Connection{}, Tracker: tracking.New(apinames.Default)}, func(objects.OwnerKey) {})
	return &reconciliation{Reconciler: r, state: r.remember(key, dep.UID, r.Here, &claimants{}), key: key, scope: corev1alpha1.ScopeNamespaced, deployment: dep}
}

// loneSet turns a reconcile into one of a set without a deployment.
func loneSet(s *reconciliation, set *corev1alpha1.ObjectSet) {
	s.deployment, s.key = nil, objects.OwnerKey{Kind: "ObjectSet", Namespace: set.Namespace, Name: set.Name}
	s.state = s.remember(s.key, set.UID, s.Here, &claimants{})
	s.sets = []corev1alpha1.GenericObjectSet{set}
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
		Changed: func(...objects.Change) {}, KindChanged: changed,
	})
	require.NoError(t, err)
	return &cluster.Connection{Cache: live}
}

// noPage is the answer of an API server, or of a proxy before it, that does not serve an API.
func noPage(verb string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, verb, schema.GroupResource{}, "shop", "404 page not found", 0, true)
}
