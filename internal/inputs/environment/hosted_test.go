package environment

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/test/require"
)

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
		u := obj(t, tc.text)
		u.SetNamespace("clusters")
		u.SetName("my.own.cluster")
		got := hostedOf(u).state
		if got.Available != tc.available || got.Deleting != tc.deleting || got.Namespace != "clusters-my-own-cluster" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A hosted cluster gets the namespace of its control plane, regardless of the name that is derived
// for it.
func TestInTheirNamespaces(t *testing.T) {
	t.Parallel()
	cluster := func(namespace, name string) metav1.Object {
		u := obj(t, "{status: {conditions: [{type: Available, status: 'True'}]}}")
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}

	plane := func(namespace, name, of string) metav1.Object {
		u := obj(t, "{}")
		u.SetNamespace(namespace)
		u.SetName(name)
		if of != "" {
			u.SetAnnotations(map[string]string{"hypershift.openshift.io/cluster": of})
		}
		return u
	}

	d, c := start(t, table[hostedClusters].kind, table[hostedControlPlanes].kind)
	<-c.begun
	<-c.begun
	c.of("hostedclusters/").Listed([]metav1.Object{cluster("a", "b-c"), cluster("a-b", "c"), cluster("clusters", "my.own"), cluster("kube", "system")})
	for name, tc := range map[string]struct {
		planes []metav1.Object
		want   string
	}{
		"no control plane":          {nil, "a/b-c no, a-b/c no, clusters/my.own no, kube/system no"},
		"each has its own":          {[]metav1.Object{plane("a-b-c", "c", "a-b/c"), plane("clusters-my-own", "my.own", "clusters/my.own")}, "a-b/c yes, clusters/my.own yes, kube/system no"},
		"the other twin":            {[]metav1.Object{plane("a-b-c", "b-c", "a/b-c")}, "a/b-c yes, clusters/my.own no, kube/system no"},
		"without the annotation":    {[]metav1.Object{plane("a-b-c", "b-c", "")}, "a/b-c yes, clusters/my.own no, kube/system no"},
		"of another of this name":   {[]metav1.Object{plane("a-b-c", "c", "x/c")}, "clusters/my.own no, kube/system no"},
		"in another namespace":      {[]metav1.Object{plane("a", "b-c", "a/b-c"), plane("kube", "system", "kube/system")}, "a/b-c no, a-b/c no, clusters/my.own no, kube/system no"},
		"of another name elsewhere": {[]metav1.Object{plane("kube-system", "other", "")}, "a/b-c no, a-b/c no, clusters/my.own no"},
	} {
		c.of("hostedcontrolplanes/").Listed(tc.planes)
		all, err := d.HostedClusters()
		var got []string
		for _, c := range all {
			got = append(got, c.Key.String()+map[bool]string{true: " yes", false: " no"}[c.Available])
		}
		if err != nil {
			t.Error(name, err)
		}
		require.Equal(t, tc.want, strings.Join(got, ", "), name)
	}
}

// The kinds are watched while they are served. A change is reported if it affects the kept part.
func TestHostedClusters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, c := detect(t, "", map[schema.GroupKind]error{})
		c.begun, c.changed = make(chan string, 100), make(chan struct{}, 100)
		changes := 0
		d.options.HostedChanged = func() { changes++ }
		kinds := map[topic]schema.GroupKind{hostedClusters: table[hostedClusters].kind, hostedControlPlanes: table[hostedControlPlanes].kind}
		expect := func(what string, names []string, err error, changed int) {
			t.Helper()
			synctest.Wait()
			all, got := d.HostedClusters()
			var found []string
			for _, cluster := range all {
				found = append(found, cluster.Key.String())
			}
			if diff := cmp.Diff(names, found); diff != "" || !errors.Is(got, err) || changes != changed {
				t.Errorf("%s: %s %v, %d changes, want %d", what, diff, got, changes, changed)
			}
			changes = 0
		}
		clusters := func() livestate.Listener { return c.of("hostedclusters/") }
		cluster := func(name, more string) metav1.Object {
			return obj(t, "{metadata: {namespace: ns, name: "+name+"}"+more+"}")
		}

		c.serve(kinds[hostedClusters], livestate.ErrNotReady)
		go func() { _ = d.Start(t.Context()) }()
		expect("discovery is not known", nil, ErrUnknown, 0)
		c.remove(kinds[hostedClusters])
		time.Sleep(2 * startRetry)
		expect("not served", nil, ErrNotServed, 1)
		c.serve(kinds[hostedClusters], nil)
		d.KindChanged(kinds[hostedClusters])
		expect("not listed", nil, ErrUnknown, 0)
		refused := errors.New("forbidden")
		clusters().Failed(refused)
		expect("the list is refused", nil, refused, 1)
		clusters().Failed(nil)
		clusters().Listed([]metav1.Object{cluster("b", ""), cluster("a", "")})
		expect("listed, without control planes", nil, ErrNoPlanes, 1)
		c.serve(kinds[hostedControlPlanes], nil)
		d.KindChanged(kinds[hostedControlPlanes])
		expect("control planes are not listed", nil, ErrUnknown, 0)
		c.of("hostedcontrolplanes/").Listed(nil)
		expect("listed", []string{"ns/a", "ns/b"}, nil, 1)
		clusters().Listed([]metav1.Object{cluster("a", ", spec: {x: 1}"), cluster("b", "")})
		clusters().Changed(cluster("b", ", spec: {x: 1}"))
		expect("changes of other parts", []string{"ns/a", "ns/b"}, nil, 0)
		clusters().Failed(refused)
		expect("the watch fails", []string{"ns/a", "ns/b"}, nil, 0)
		c.of("hostedcontrolplanes/").Changed(obj(t, "{metadata: {namespace: ns-b, name: b}}"))
		clusters().Changed(cluster("b", ", status: {conditions: [{type: Available, status: 'True'}]}"))
		clusters().Changed(cluster("c", ""))
		clusters().Deleted(cluster("a", ""))
		expect("changes", []string{"ns/b", "ns/c"}, nil, 3)
		c.serve(kinds[hostedClusters], errors.New("the aggregated API server is away"))
		d.KindChanged(kinds[hostedClusters])
		expect("discovery fails", []string{"ns/b", "ns/c"}, nil, 0)
		c.remove(kinds[hostedClusters])
		d.KindChanged(kinds[hostedClusters])
		expect("not served any more", nil, ErrNotServed, 1)
	})
}
