package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/test/require"
)

// cluster is a fake for the detector's dependencies.
type cluster struct {
	mu        sync.Mutex
	served    map[schema.GroupKind]error // nil means served
	listeners map[string]livestate.Listener
	begun     chan string
	changed   chan struct{}
	looks     int
}

func (c *cluster) mapping(gk schema.GroupKind, _ string) (*meta.RESTMapping, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	if err, known := c.served[gk]; !known {
		return nil, &meta.NoKindMatchError{GroupKind: gk}
	} else if err != nil {
		return nil, err
	}
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: gk.Group, Version: "v1", Resource: strings.ToLower(gk.Kind) + "s"}}, nil
}

// looked returns how often discovery was queried.
func (c *cluster) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

func (c *cluster) serve(gk schema.GroupKind, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served[gk] = err
}

func (c *cluster) remove(gk schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.served, gk)
}

func (c *cluster) listen(ctx context.Context, sel livestate.Selection, l livestate.Listener) {
	name := sel.Resource.Resource + "/" + sel.Name
	c.mu.Lock()
	c.listeners[name] = l
	c.mu.Unlock()
	c.begun <- name
	<-ctx.Done()
}

func (c *cluster) of(name string) livestate.Listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listeners[name]
}

// detect returns a Detector for an API server that serves these kinds, or does not answer.
func detect(t *testing.T, version string, served map[schema.GroupKind]error) (*Detector, *cluster) {
	t.Helper()
	c := &cluster{
		served: served, listeners: map[string]livestate.Listener{},
		begun: make(chan string, 10), changed: make(chan struct{}, 100),
	}
	return New(Options{
		Listen: c.listen, Mapping: c.mapping, Changed: func() { c.changed <- struct{}{} },
	}, version), c
}

func start(t *testing.T, served ...schema.GroupKind) (*Detector, *cluster) {
	t.Helper()
	d, c := detect(t, "v1.36.3", map[schema.GroupKind]error{})
	for _, gk := range served {
		c.serve(gk, nil)
	}
	if _, waiting, err := d.For(""); !waiting || err == nil {
		t.Error("known before the start")
	}
	go func() { _ = d.Start(t.Context()) }()
	return d, c
}

func obj(t *testing.T, text string) metav1.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func expect(t *testing.T, d *Detector, namespace string, want manifestsv1alpha1.PackageEnvironment) {
	t.Helper()
	got, waiting, err := d.For(namespace)
	if waiting || err != nil {
		t.Fatalf("not known: %v", err)
	}
	require.Equal(t, want, got, fmt.Sprintf("in namespace %q", namespace))
}

func kubernetes(version string) manifestsv1alpha1.PackageEnvironment {
	return manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: version}}
}

func TestPlainKubernetes(t *testing.T) {
	t.Parallel()
	d, c := start(t)
	<-c.changed
	expect(t, d, "", kubernetes("v1.36.3"))
	d.VersionChanged("v1.37.0")
	<-c.changed
	expect(t, d, "team", kubernetes("v1.37.0"))
	d.VersionChanged("v1.37.0")
	d.KindChanged(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	select {
	case <-c.changed:
		t.Error("nothing changed")
	default:
	}
}

// The detector reports that the environment is known even if it is empty, because packages wait for
// it.
func TestKnownIsTold(t *testing.T) {
	t.Parallel()
	gk := table[clusterProxy].kind
	d, c := detect(t, "v1.36.3", map[schema.GroupKind]error{gk: livestate.ErrNotReady})
	go func() { _ = d.Start(t.Context()) }()
	if _, waiting, err := d.For(""); !waiting || err == nil {
		t.Error("known before discovery")
	}
	c.remove(gk)
	<-c.changed
	expect(t, d, "", kubernetes("v1.36.3"))
}

// The detector also reports why the environment will not be known soon, because packages show the
// reason.
func TestWhyUnknownIsTold(t *testing.T) {
	t.Parallel()
	gk := table[hostedClusters].kind
	d, c := detect(t, "v1.36.3", map[schema.GroupKind]error{gk: errors.New("no answer")})
	go func() { _ = d.Start(t.Context()) }()
	<-c.changed
	if _, waiting, err := d.For(""); waiting || err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("waiting in silence: %t, %v", waiting, err)
	}
}

// A kind is known as served when the detector has looked at discovery, not when discovery changes:
// its objects have to be listed first.
func TestDiscoveryBeforeTheLook(t *testing.T) {
	t.Parallel()
	d, c := detect(t, "v1.36.3", map[schema.GroupKind]error{})
	for _, part := range table {
		c.serve(part.kind, livestate.ErrNotReady)
	}

	d.change(func() { d.ctx = t.Context() })
	unknown := func(when string) {
		t.Helper()
		if env, waiting, err := d.For(""); !waiting || err == nil {
			t.Errorf("known %s: %+v", when, env)
		}
	}
	if d.refresh() {
		t.Error("all is known before discovery")
	}

	unknown("before discovery")
	for _, part := range table {
		c.serve(part.kind, nil)
	}

	unknown("before the look")
	d.VersionChanged("v1.36.4")
	unknown("before the look, after a change")
	if len(c.changed) > 0 {
		t.Error("it is reported as known")
	}
	if !d.refresh() {
		t.Error("discovery is there")
	}

	unknown("before the objects are listed")
	for range topics {
		c.of(<-c.begun).Listed(nil)
	}

	expect(t, d, "", func() manifestsv1alpha1.PackageEnvironment {
		env := kubernetes("v1.36.4")
		env.HyperShift = &manifestsv1alpha1.PackageEnvironmentHyperShift{}
		return env
	}())
}

func TestOpenShift(t *testing.T) {
	t.Parallel()
	d, c := start(t, table[clusterVersion].kind, table[clusterProxy].kind)
	for range 3 {
		<-c.begun
	}
	c.of("clusterversions/version").Listed([]metav1.Object{obj(t, `
metadata: {name: version}
status: {desired: {version: 4.19.0}, history: [{state: Partial, version: 4.19.0}, {state: Completed, version: 4.18.2}, {state: Completed, version: 4.17.0}]}`)})
	if _, waiting, err := d.For(""); !waiting || err == nil {
		t.Error("half of it counts as known")
	}
	c.of("proxys/cluster").Listed(nil)
	c.of("configmaps/osd-cluster-metadata").Listed(nil)
	want := kubernetes("v1.36.3")
	want.OpenShift = &manifestsv1alpha1.PackageEnvironmentOpenShift{Version: "4.18.2"}
	expect(t, d, "", want)

	c.of("proxys/cluster").Changed(obj(t, `{metadata: {name: cluster}, status: {httpsProxy: "https://proxy", noProxy: .local}}`))
	c.of("configmaps/osd-cluster-metadata").Changed(obj(t, `{metadata: {name: osd-cluster-metadata, namespace: openshift-config}, data: {api.openshift.com_region: eu}}`))
	want.Proxy = &manifestsv1alpha1.PackageEnvironmentProxy{HTTPSProxy: "https://proxy", NoProxy: ".local"}
	want.OpenShift.Managed = &manifestsv1alpha1.PackageEnvironmentManagedOpenShift{Data: map[string]string{"api.openshift.com_region": "eu"}}
	expect(t, d, "team", want)

	c.of("proxys/cluster").Changed(obj(t, `{metadata: {name: cluster}, status: {}}`))
	c.of("configmaps/osd-cluster-metadata").Deleted(obj(t, `{metadata: {name: osd-cluster-metadata, namespace: openshift-config}}`))
	c.of("clusterversions/version").Changed(obj(t, `{metadata: {name: version}, status: {desired: {version: 4.20.0}}}`))
	want.Proxy, want.OpenShift = nil, &manifestsv1alpha1.PackageEnvironmentOpenShift{Version: "4.20.0"}
	expect(t, d, "", want)

	// A failure after the first list does not change the known state.
	c.of("clusterversions/version").Failed(errors.New("gone away"))
	expect(t, d, "", want)

	c.remove(table[clusterVersion].kind)
	d.KindChanged(table[clusterVersion].kind)
	expect(t, d, "", kubernetes("v1.36.3"))
}

func TestHyperShift(t *testing.T) {
	t.Parallel()
	d, c := start(t)
	<-c.changed
	c.serve(table[hostedClusters].kind, nil)
	d.KindChanged(table[hostedClusters].kind)
	<-c.begun
	c.serve(table[hostedControlPlanes].kind, nil)
	d.KindChanged(table[hostedControlPlanes].kind)
	<-c.begun
	c.of("hostedcontrolplanes/").Listed(nil)
	c.of("hostedclusters/").Listed([]metav1.Object{obj(t, `
metadata: {name: my.cluster, namespace: clusters, labels: {a: b}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", c: d}}
spec: {nodeSelector: {role: infra}}`)})
	plain := kubernetes("v1.36.3")
	plain.HyperShift = &manifestsv1alpha1.PackageEnvironmentHyperShift{}
	expect(t, d, "", plain)
	expect(t, d, "clusters", plain)
	expect(t, d, "clusters-my-cluster", plain) // the author of the HostedCluster chose that name
	c.of("hostedcontrolplanes/").Changed(obj(t, `{metadata: {name: my.cluster, namespace: clusters-my-cluster, annotations: {hypershift.openshift.io/cluster: clusters-my/cluster}}}`))
	expect(t, d, "clusters-my-cluster", plain)
	c.of("hostedcontrolplanes/").Changed(obj(t, `{metadata: {name: my.cluster, namespace: clusters-my-cluster, annotations: {hypershift.openshift.io/cluster: clusters/my.cluster}}}`))
	hosted := kubernetes("v1.36.3")
	hosted.HyperShift = &manifestsv1alpha1.PackageEnvironmentHyperShift{HostedCluster: &manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster{
		Metadata: manifestsv1alpha1.TemplateContextObjectMeta{
			Name: "my.cluster", Namespace: "clusters", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		},
		HostedClusterNamespace: "clusters-my-cluster", NodeSelector: map[string]string{"role": "infra"},
	}}

	expect(t, d, "clusters-my-cluster", hosted)
	c.of("hostedclusters/").Deleted(obj(t, `{metadata: {name: my.cluster, namespace: clusters}}`))
	expect(t, d, "clusters-my-cluster", plain)
}

// If a served kind cannot be read, the environment stays unknown, with a reason. Packages must not
// be judged as if the kind were missing.
func TestTrouble(t *testing.T) {
	t.Parallel()
	d, c := start(t, table[clusterProxy].kind)
	<-c.begun
	c.of("proxys/cluster").Failed(errors.New("forbidden"))
	if _, waiting, err := d.For(""); waiting || err == nil || !strings.Contains(err.Error(), "Proxy.config.openshift.io: forbidden") {
		t.Errorf("waiting %t, %v", waiting, err)
	}
	c.of("proxys/cluster").Listed(nil)
	expect(t, d, "", kubernetes("v1.36.3"))

	c.serve(table[hostedClusters].kind, errors.New("its server does not answer"))
	d.KindChanged(table[hostedClusters].kind)
	if _, waiting, err := d.For(""); waiting || err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("waiting %t, %v", waiting, err)
	}
	c.remove(table[hostedClusters].kind)
	d.KindChanged(table[hostedClusters].kind)
	expect(t, d, "", kubernetes("v1.36.3"))
}

// If the server of a group did not answer, the group is looked up again. There is no event if that
// server turns out not to serve the kind.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for reason, answer := range map[string]func(*cluster){
		"it is taken away":   func(c *cluster) { c.remove(table[hostedClusters].kind) },
		"it serves the kind": func(c *cluster) { c.serve(table[hostedClusters].kind, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d, c := start(t)
			synctest.Wait()
			c.serve(table[hostedClusters].kind, errors.New("its server does not answer"))
			d.KindChanged(table[hostedClusters].kind)
			c.serve(table[hostedClusters].kind, errors.New("its server is busy"))
			time.Sleep(2 * unavailableRetry)
			if _, waiting, err := d.For(""); waiting || err == nil || !strings.Contains(err.Error(), "is busy") {
				t.Errorf("%s: waiting %t, %v", reason, waiting, err)
			}
			for len(c.changed) > 0 {
				<-c.changed
			}
			answer(c)
			time.Sleep(2 * unavailableRetry)
			synctest.Wait()
			if l := c.of("hostedclusters/"); l != nil {
				l.Listed(nil)
			}
			if _, _, err := d.For(""); err != nil || len(c.changed) == 0 {
				t.Errorf("%s: %v, %d changes are reported", reason, err, len(c.changed))
			}
			looked := c.looked()
			time.Sleep(10 * unavailableRetry)
			if c.looked() != looked {
				t.Errorf("%s: it is looked for ever after", reason)
			}
		})
	}
}

// If two hosted clusters map to one namespace, the one whose control plane is there wins.
func TestTwinsOfHostedClusters(t *testing.T) {
	t.Parallel()
	d, c := start(t, table[hostedClusters].kind, table[hostedControlPlanes].kind)
	<-c.begun
	<-c.begun
	all := []metav1.Object{obj(t, `{metadata: {name: b, namespace: a-c}}`), obj(t, `{metadata: {name: c-b, namespace: a}}`)}
	c.of("hostedclusters/").Listed(all)
	for _, plane := range []string{
		`{metadata: {name: b, namespace: a-c-b, annotations: {hypershift.openshift.io/cluster: a-c/b}}}`, `{metadata: {name: c-b, namespace: a-c-b}}`,
	} {
		c.of("hostedcontrolplanes/").Listed([]metav1.Object{obj(t, plane)})
		want := obj(t, plane).GetName()
		slices.Reverse(all)
		c.of("hostedclusters/").Listed(all)
		if got, _, err := d.For("a-c-b"); err != nil || got.HyperShift.HostedCluster == nil || got.HyperShift.HostedCluster.Metadata.Name != want {
			t.Errorf("%s: %+v, %v", plane, got.HyperShift, err)
		}
	}
}

// The lookup for a package is fast regardless of the number of hosted clusters.
func TestManyHostedClusters(t *testing.T) {
	t.Parallel()
	var all, planes []metav1.Object
	for i := range 200 {
		all = append(all, obj(t, fmt.Sprintf(`{metadata: {name: c%d, namespace: clusters}}`, i)))
		planes = append(planes, obj(t, fmt.Sprintf(`{metadata: {name: c%d, namespace: clusters-c%d, annotations: {hypershift.openshift.io/cluster: clusters/c%d}}}`, i, i, i)))
	}

	d, c := start(t, table[hostedClusters].kind, table[hostedControlPlanes].kind)
	<-c.begun
	<-c.begun
	c.of("hostedclusters/").Listed(all)
	c.of("hostedcontrolplanes/").Listed(planes)
	if env, _, err := d.For("clusters-c7"); err != nil || env.HyperShift.HostedCluster == nil || env.HyperShift.HostedCluster.Metadata.Name != "c7" {
		t.Fatalf("%+v, %v", env.HyperShift, err)
	}

	first, _, _ := d.For("clusters-c7")
	if second, _, _ := d.For("clusters-c7"); first.HyperShift != second.HyperShift {
		t.Error("it was made again, and all others with it")
	}
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
