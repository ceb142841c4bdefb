package manager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// clusterOf is an API server that serves some kinds.
type clusterOf struct {
	mu      sync.Mutex
	kinds   []string
	objects string // of every list
	denied  string // resource that cannot be written
	asked   atomic.Int64
}

func (c *clusterOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	ours, reviews := corev1alpha1.GroupVersion, authorizationv1.SchemeGroupVersion
	resource, ofOurs := strings.CutPrefix(r.URL.Path, "/apis/"+ours.String()+"/")
	switch {
	case r.Method == http.MethodPost:
		review := &authorizationv1.SelfSubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Status.Allowed = review.Spec.ResourceAttributes.Resource != c.denied
		_ = json.NewEncoder(w).Encode(review)
	case ofOurs:
		for _, kind := range c.kinds {
			if resource == strings.ToLower(kind)+"s" {
				_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"items":[%s]}`, ours, kind+"List", c.objects)
			}
		}
	case r.URL.Path == "/api":
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":[]}`))
	case r.URL.Path == "/apis":
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group(ours) + "," + group(reviews) + "]}"))
	case r.URL.Path == "/apis/"+reviews.String():
		_ = json.NewEncoder(w).Encode(resources(reviews, "SelfSubjectAccessReview"))
	case r.URL.Path == "/apis/"+ours.String():
		_ = json.NewEncoder(w).Encode(resources(ours, c.kinds...))
	default:
		_, _ = w.Write([]byte(group(ours)))
	}
}

func group(gv schema.GroupVersion) string {
	version := fmt.Sprintf(`{"groupVersion":%q,"version":%q}`, gv, gv.Version)
	return fmt.Sprintf(`{"kind":"APIGroup","apiVersion":"v1","name":%q,"versions":[%s],"preferredVersion":%s}`, gv.Group, version, version)
}

func resources(gv schema.GroupVersion, kinds ...string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: gv.Group == corev1alpha1.GroupVersion.Group})
	}
	return list
}

func newReadinessOf(t *testing.T, cluster *clusterOf) *readiness {
	t.Helper()
	server := httptest.NewServer(cluster)
	t.Cleanup(server.Close)
	c := &Config{Namespace: "n", LeaderElect: true, MetricsAddress: "0", ProbeAddress: "0", PprofAddress: "0"}
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	mgr, _, err := newManager(c, config, logr.Discard(), func(error) {})
	require.NoError(t, err)
	r, err := newReadiness(mgr, config, c)
	require.NoError(t, err)
	return r
}

// A standby is able once it could read, decode and write every kind, by reviews that need no Lease.
func TestStandbyIsAble(t *testing.T) {
	t.Parallel()
	all := kindsOf(newReadinessOf(t, &clusterOf{}).client.Scheme(), &Config{})
	if len(all) != 18 {
		t.Fatalf("the kinds are %v", all)
	}
	for name, tc := range map[string]struct {
		cluster *clusterOf
		want    string
	}{
		"everything is there":    {cluster: &clusterOf{kinds: all, objects: `{"metadata":{"name":"a"}}`}},
		"older CRDs lack a kind": {cluster: &clusterOf{kinds: all[1:]}, want: "does not serve the kind AvailablePackage: install the CRDs of this version first, which are in config/crds"},
		"an object is not decoded": {
			cluster: &clusterOf{kinds: all, objects: `{"metadata":{"name":"a","labels":1}}`}, want: "read and decode a AvailablePackage",
		},
		"a kind cannot be written": {
			cluster: &clusterOf{kinds: all, denied: "objectsets"}, want: "may not patch objectsets.package-operator.run: install the roles of this version first, which are in config/rbac",
		},
		"the Lease cannot be written": {cluster: &clusterOf{kinds: all, denied: "leases"}, want: "may not update leases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := newReadinessOf(t, tc.cluster).rehearse(t.Context())
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// CRDs that come after the process make it ready, and from then on no requests are sent.
func TestReadiness(t *testing.T) {
	t.Parallel()
	cluster := &clusterOf{}
	r := newReadinessOf(t, cluster)
	elected := make(chan struct{})
	r.elected = elected
	if err := r.check(nil); err == nil {
		t.Error("a process that is not proven to work is ready")
	}
	if err := r.rehearse(t.Context()); err == nil {
		t.Fatal("a cluster without kinds will do")
	}
	cluster.mu.Lock()
	cluster.kinds = kindsOf(r.client.Scheme(), r.config)
	cluster.mu.Unlock()
	r.run(t.Context())
	if err := r.check(nil); err != nil {
		t.Errorf("a standby that could lead is not ready: %v", err)
	}
	before := cluster.asked.Load()
	for range 3 {
		_ = r.check(nil)
	}
	if cluster.asked.Load() != before {
		t.Error("a probe sends requests")
	}
	close(elected)
	if err := r.check(nil); err == nil {
		t.Error("a leader is ready before its caches are in sync")
	}
	r.synced.Store(true)
	if err := r.check(nil); err != nil {
		t.Errorf("a leader in sync is not ready: %v", err)
	}
}

// An agent needs the kinds of its phases alone.
func TestKindsOfAgents(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{"n": "ObjectSetPhase", "": "ObjectSetPhase ClusterObjectSetPhase"} {
		if got := strings.Join(kindsOf(nil, &Config{TargetKubeconfig: "k", WatchNamespace: namespace}), " "); got != want {
			t.Errorf("in %q: %s, want %s", namespace, got, want)
		}
	}
}
