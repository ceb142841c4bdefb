package manager

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

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
		require.Equal(t, want, strings.Join(kindsOf(nil, &Config{TargetKubeconfig: "k", WatchNamespace: namespace}), " "), fmt.Sprintf("in %q", namespace))
	}
}

const (
	attackers    = 200
	mayGrow      = 8 << 20 // bytes of the heap
	answerWithin = time.Second
)

// attack sends a request from many clients, which stay connected, and returns by how much the heap
// grew.
func attack(t *testing.T, dial func() (net.Conn, error), request string) int64 {
	t.Helper()
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	var all sync.WaitGroup
	for range attackers {
		all.Go(func() {
			c, err := dial()
			if err != nil {
				return // refused
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(c, request)
		})
	}
	all.Wait()
	grown := live() - before
	t.Logf("the heap grew by %d KiB", grown>>10)
	return grown
}

// headers are so many KiB of them, without an end.
func headers(path string, size int) string {
	var b strings.Builder
	b.WriteString("GET " + path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n")
	for i := range size / 8 {
		fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("a", 8<<10-10))
	}
	return b.String()
}

// started starts the server of a port.
func started(t *testing.T, port *ctrlmanager.Server, err error) string {
	t.Helper()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = port.Start(ctx) })
	t.Cleanup(func() { stop(); served.Wait() })
	return port.Listener.Addr().String()
}

// Clients of the port of probes hold little memory, and no place that the kubelet needs.
func TestHealthIsBounded(t *testing.T) {
	p, err := newProbed(nil, "0")
	require.NoError(t, err)
	port, err := newPort("health probe", "127.0.0.1:0", p.probes())
	address := started(t, port, err)
	dial := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(t.Context(), "tcp", address) }
	for size, request := range map[int]string{900: headers("/healthz", 900), 0: headers("/healthz", 0)} {
		if grown := attack(t, dial, request); grown > mayGrow {
			t.Errorf("%d KiB of headers: the heap grew by %d KiB", size, grown>>10)
		}
		begin := time.Now()
		response, err := (&http.Client{Timeout: 10 * answerWithin}).Get("http://" + address + "/healthz")
		require.NoError(t, err)
		_ = response.Body.Close()
		if took := time.Since(begin); response.StatusCode != http.StatusOK || took > answerWithin {
			t.Errorf("%d KiB of headers: the kubelet gets %d after %s", size, response.StatusCode, took)
		}
	}
}

// Clients of the port of metrics hold little memory, also with complete requests. Clients with the
// right to get metrics get them.
func TestMetricsAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"status": map[string]any{"allowed": true}}
		if strings.Contains(r.URL.Path, "tokenreviews") {
			review := &authenticationv1.TokenReview{}
			_ = json.NewDecoder(r.Body).Decode(review)
			answer["status"] = map[string]any{"authenticated": review.Spec.Token == "right", "user": map[string]any{"username": "prometheus"}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	port, err := newMetrics(&Config{MetricsAddress: "127.0.0.1:0", MetricsSecure: true}, &rest.Config{Host: server.URL}, logr.Discard())
	address := started(t, port, err)
	insecure := &tls.Config{InsecureSkipVerify: true}
	dial := func() (net.Conn, error) {
		return (&tls.Dialer{Config: insecure}).DialContext(t.Context(), "tcp", address)
	}
	for what, request := range map[string]string{"headers without end": headers("/metrics", 900), "a large request": headers("/metrics", 900) + "\r\n", "a request": headers("/metrics", 0) + "\r\n"} {
		if grown := attack(t, dial, request); grown > mayGrow {
			t.Errorf("%s: the heap grew by %d KiB", what, grown>>10)
		}
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: insecure}}
	for token, want := range map[string]bool{"right": true, "wrong": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		require.NoError(t, err)
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		_ = response.Body.Close()
		if got := response.StatusCode == http.StatusOK; got != want || strings.Contains(string(body), "go_goroutines") != want {
			t.Errorf("%s token: %d", token, response.StatusCode)
		}
	}
}
