package hostedclusterpackages

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestHostedClusterOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text                string
		available, deleting bool
	}{
		"available":     {"{status: {conditions: [{type: Degraded, status: 'False'}, {type: Available, status: 'True'}]}}", true, false},
		"not available": {"{status: {conditions: [{type: Available, status: 'False'}]}}", false, false},
		"unknown":       {"{status: {conditions: [{type: Available, status: Unknown}]}}", false, false},
		"no status":     {"{}", false, false},
		"no list":       {"{status: {conditions: {type: Available}}}", false, false},
		"no objects":    {"{status: {conditions: [Available, 1, null, [], {status: 'True'}, {type: 1}, {type: Available}]}}", false, false},
		"no map":        {"{status: x}", false, false},
		"going":         {"{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}", false, true},
	} {
		u := parseObject(t, tc.text)
		u.SetNamespace("clusters")
		u.SetName("my.own.cluster")
		got := hostedClusterOf(u)
		if got.available != tc.available || got.deleting != tc.deleting || got.namespace != "clusters-my-own-cluster" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A hosted cluster has the namespace that its control plane is in, whatever its name stands for.
func TestInTheirNamespaces(t *testing.T) {
	t.Parallel()
	cluster := func(namespace, name string) hostedCluster {
		u := parseObject(t, "{status: {conditions: [{type: Available, status: 'True'}]}}")
		u.SetNamespace(namespace)
		u.SetName(name)
		return hostedClusterOf(u)
	}
	plane := func(namespace, name, of string) hostedCluster {
		u := parseObject(t, "{}")
		u.SetNamespace(namespace)
		u.SetName(name)
		if of != "" {
			u.SetAnnotations(map[string]string{"hypershift.openshift.io/cluster": of})
		}
		return hostedClusterOf(u)
	}
	all := []hostedCluster{cluster("a", "b-c"), cluster("a-b", "c"), cluster("clusters", "my.own"), cluster("kube", "system")}
	for name, tc := range map[string]struct {
		planes []hostedCluster
		want   string
	}{
		"no control plane":          {nil, "a/b-c no, a-b/c no, clusters/my.own no, kube/system no"},
		"each has its own":          {[]hostedCluster{plane("a-b-c", "c", "a-b/c"), plane("clusters-my-own", "my.own", "clusters/my.own")}, "a-b/c yes, clusters/my.own yes, kube/system no"},
		"the other twin":            {[]hostedCluster{plane("a-b-c", "b-c", "a/b-c")}, "a/b-c yes, clusters/my.own no, kube/system no"},
		"without the annotation":    {[]hostedCluster{plane("a-b-c", "b-c", "")}, "a/b-c yes, clusters/my.own no, kube/system no"},
		"of another of this name":   {[]hostedCluster{plane("a-b-c", "c", "x/c")}, "clusters/my.own no, kube/system no"},
		"in another namespace":      {[]hostedCluster{plane("a", "b-c", "a/b-c"), plane("kube", "system", "kube/system")}, "a/b-c no, a-b/c no, clusters/my.own no, kube/system no"},
		"of another name elsewhere": {[]hostedCluster{plane("kube-system", "other", "")}, "a/b-c no, a-b/c no, clusters/my.own no"},
	} {
		var got []string
		for _, c := range inTheirNamespaces(all, tc.planes) {
			got = append(got, c.key.String()+map[bool]string{true: " yes", false: " no"}[c.available])
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// api is an API server that serves HostedClusters or not.
type api struct {
	mu        sync.Mutex
	err       error
	resource  schema.GroupVersionResource
	listeners []livestate.Listener
	looked    int
}

func (a *api) mapping(gk schema.GroupKind, _ string) (*meta.RESTMapping, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked++
	return &meta.RESTMapping{Resource: a.resource}, a.err
}

func (a *api) listen(ctx context.Context, _ livestate.Selection, l livestate.Listener) {
	a.mu.Lock()
	a.listeners = append(a.listeners, l)
	a.mu.Unlock()
	<-ctx.Done()
}

func (a *api) serve(version string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resource, a.err = schema.GroupVersionResource{Version: version, Resource: "hostedclusters"}, err
}

// The kind is watched while it is served. Nothing is looked up once it is known whether it is.
func TestClusters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		server, changes := &api{err: livestate.ErrNotReady}, 0
		c := newClusters(Options{Listen: server.listen, Mapping: server.mapping}, hostedClusterKind, errNotServed, func() { changes++ })
		go func() { _ = c.Start(ctx) }()
		expect := func(what string, names []string, err error, changed int) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			all, got := c.all()
			var found []string
			for _, cluster := range all {
				found = append(found, cluster.key.String())
			}
			if diff := cmp.Diff(names, found); diff != "" || !errors.Is(got, err) || changes != changed {
				t.Errorf("%s: %s %v, %d changes, want %d", what, diff, got, changes, changed)
			}
			changes = 0
		}
		kind := func(version string, err error) {
			server.serve(version, err)
			c.kindChanged(schema.GroupKind{Kind: "Other"})
			c.kindChanged(hostedClusterKind)
		}
		last := func() livestate.Listener { return server.listeners[len(server.listeners)-1] }
		cluster := func(name, more string) metav1.Object {
			return parseObject(t, "{metadata: {namespace: ns, name: "+name+"}"+more+"}")
		}

		expect("discovery is not known", nil, errUnknown, 0)
		server.serve("", &meta.NoKindMatchError{})
		expect("not served", nil, errNotServed, 1)
		before := server.looked
		time.Sleep(time.Hour)
		if server.looked != before {
			t.Error("it polls")
		}
		kind("v1alpha1", nil)
		expect("not listed", nil, errUnknown, 0)
		refused := errors.New("forbidden")
		last().Failed(refused)
		expect("the list is refused", nil, refused, 1)
		last().Failed(nil)
		last().Listed([]metav1.Object{cluster("b", ""), cluster("a", "")})
		expect("listed", []string{"ns/a", "ns/b"}, nil, 2)
		last().Listed([]metav1.Object{cluster("a", ", spec: {x: 1}"), cluster("b", "")})
		last().Changed(cluster("b", ", spec: {x: 1}"))
		expect("changes of what is not kept", []string{"ns/a", "ns/b"}, nil, 0)
		last().Failed(refused)
		expect("the watch fails", []string{"ns/a", "ns/b"}, nil, 0)
		last().Changed(cluster("b", ", status: {conditions: [{type: Available, status: 'True'}]}"))
		last().Changed(cluster("c", ""))
		last().Deleted(cluster("a", ""))
		expect("changes", []string{"ns/b", "ns/c"}, nil, 3)
		kind("v1alpha1", errors.New("the aggregated API server is away"))
		expect("discovery fails", []string{"ns/b", "ns/c"}, nil, 0)
		old := last()
		kind("v1beta1", nil)
		expect("another version", nil, errUnknown, 0)
		last().Listed([]metav1.Object{cluster("d", "")})
		old.Listed([]metav1.Object{cluster("old", "")})
		expect("the former watch", []string{"ns/d"}, nil, 1)
		kind("", &meta.NoKindMatchError{})
		expect("not served any more", nil, errNotServed, 1)
		stop()
	})
}
