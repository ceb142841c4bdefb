package environment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
)

// Options are what a Detector works with.
type Options struct {
	// Version asks the API server for its version.
	Version func(context.Context) (string, error)
	// Listen watches a selection until the context ends.
	Listen func(context.Context, livestate.Selection, livestate.Listener)
	// Mapping tells whether a kind is served; an error that is neither
	// livestate.ErrNotReady nor a NoMatch is why that is not known.
	Mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error)
	// Changed is called when the environment is another one, or known at last. It
	// must not block.
	Changed func()
}

// Detector keeps the environment up to date. It is safe for concurrent use.
type Detector struct {
	options Options

	mu      sync.Mutex
	ctx     context.Context
	version string
	// settled tells that every topic was looked for once with an answer.
	settled bool
	// told is why the environment was not known when that was told last.
	told   error
	topics map[topic]*watch
}

// topic is one thing that the environment has.
type topic int

const (
	clusterVersion topic = iota
	managedData
	clusterProxy
	hostedClusters
	topics
)

// kinds say by which kind being served a topic is there.
var kinds = [topics]schema.GroupKind{
	clusterVersion: {Group: "config.openshift.io", Kind: "ClusterVersion"},
	managedData:    {Group: "config.openshift.io", Kind: "ClusterVersion"},
	clusterProxy:   {Group: "config.openshift.io", Kind: "Proxy"},
	hostedClusters: {Group: "hypershift.openshift.io", Kind: "HostedCluster"},
}

// selections say which objects a topic is about; the resource of the others than
// managedData is that of their kind.
var selections = [topics]livestate.Selection{
	clusterVersion: {Name: "version", Whole: true},
	managedData: {
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Namespace: "openshift-config", Name: "osd-cluster-metadata", Whole: true,
	},
	clusterProxy:   {Name: "cluster", Whole: true},
	hostedClusters: {Whole: true},
}

// read turns the objects of a topic into what is kept of them.
var read = [topics]func(metav1.Object) any{
	clusterVersion: func(o metav1.Object) any { return versionOf(o) },
	managedData:    func(o metav1.Object) any { return managedOf(o) },
	clusterProxy:   func(o metav1.Object) any { return proxyOf(o) },
	hostedClusters: func(o metav1.Object) any { return hostedOf(o) },
}

// watch is the watch of one topic, while its kind is served.
type watch struct {
	resource schema.GroupVersionResource
	stop     context.CancelFunc
	// listed tells that all objects are known; err is why the watch fails.
	listed bool
	err    error
	// found are the objects by "namespace/name", as packages see them.
	found map[string]any
}

// New returns a Detector that works from Start on. version is what is known of
// the API server until then.
func New(options Options, version string) *Detector {
	return &Detector{options: options, version: version, topics: map[topic]*watch{}, told: errUnknown}
}

// NeedLeaderElection tells that only the leader watches.
func (d *Detector) NeedLeaderElection() bool { return true }

// Start looks at the version, which may have changed while this process waited
// for the Lease, and watches until the context ends.
func (d *Detector) Start(ctx context.Context) error {
	version, err := d.options.Version(ctx)
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	d.change(func() { d.ctx, d.version = ctx, version })
	for d.refresh() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startRetry):
		}
	}
	<-ctx.Done()
	return nil
}

// startRetry is after what time is asked again while it is not known yet what
// the API server serves.
const startRetry = 10 * time.Millisecond

// VersionChanged takes over another version of the API server.
func (d *Detector) VersionChanged(version string) {
	d.change(func() { d.version = version })
}

// KindChanged looks at a kind that came or went.
func (d *Detector) KindChanged(gk schema.GroupKind) {
	for _, kind := range kinds {
		if kind == gk {
			d.refresh()
			return
		}
	}
}

// refresh begins and ends watches as kinds are served, and tells whether that is
// not known yet.
func (d *Detector) refresh() (again bool) {
	d.change(func() {
		if d.ctx == nil {
			return
		}
		for t := range topics {
			mapping, err := d.options.Mapping(kinds[t], "")
			switch {
			case err == nil:
				d.begin(t, mapping.Resource)
			case meta.IsNoMatchError(err):
				d.end(t)
			case errors.Is(err, livestate.ErrNotReady):
				again = true
			case d.topics[t] == nil:
				d.topics[t] = d.unavailable(err)
			case d.topics[t].resource.Empty():
				d.topics[t].err = err
			}
		}
		d.settled = !again
	})
	return again
}

// unavailable stands for a topic whose group may be served, by a server that does
// not answer now. It looks again by itself: where that server turns out not to
// serve the kind, or is taken away, no kind comes or goes, and nobody tells of it.
// d.mu is held.
func (d *Detector) unavailable(err error) *watch {
	ctx, stop := context.WithCancel(d.ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(unavailableRetry):
				d.refresh()
			}
		}
	}()
	return &watch{err: err, stop: stop}
}

// unavailableRetry is after what time it is looked again whether a group is served.
// That is known without a request.
const unavailableRetry = 5 * time.Second

// begin starts the watch of a topic unless it goes on already; d.mu is held.
func (d *Detector) begin(t topic, resource schema.GroupVersionResource) {
	if old := d.topics[t]; old != nil && old.resource == resource {
		return
	}
	d.end(t)
	ctx, stop := context.WithCancel(d.ctx)
	w := &watch{resource: resource, stop: stop, found: map[string]any{}}
	d.topics[t] = w
	selection := selections[t]
	if selection.Resource.Empty() {
		selection.Resource = resource
	}
	go d.options.Listen(ctx, selection, &listener{d: d, topic: t, watch: w})
}

// end forgets a topic; d.mu is held.
func (d *Detector) end(t topic) {
	if w := d.topics[t]; w != nil {
		w.stop()
		delete(d.topics, t)
	}
}

// change changes what is known and tells where packages see another environment, or
// another reason why there is none. What changes before it is known is told with that.
func (d *Detector) change(do func()) {
	d.mu.Lock()
	before, told := d.state(), d.told
	do()
	d.told = d.trouble()
	changed := text(told) != text(d.told) || d.told == nil && !reflect.DeepEqual(before, d.state())
	d.mu.Unlock()
	if changed {
		d.options.Changed()
	}
}

// listener notes the objects of one topic.
type listener struct {
	d     *Detector
	topic topic
	watch *watch
}

// Listed is told all objects.
func (l *listener) Listed(all []metav1.Object) {
	l.d.change(func() {
		l.watch.listed, l.watch.found = true, map[string]any{}
		for _, obj := range all {
			l.watch.found[keyOf(obj)] = read[l.topic](obj)
		}
	})
}

// Changed is told an object that is new or changed.
func (l *listener) Changed(obj metav1.Object) {
	l.d.change(func() { l.watch.found[keyOf(obj)] = read[l.topic](obj) })
}

// Deleted is told an object that is gone.
func (l *listener) Deleted(obj metav1.Object) {
	l.d.change(func() { delete(l.watch.found, keyOf(obj)) })
}

// Failed is told why the watch does not work.
func (l *listener) Failed(err error) {
	l.d.change(func() { l.watch.err = err })
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// errUnknown is that the environment is not known yet, without more to say.
var errUnknown = errors.New("the cluster is being looked at")

// trouble is why the environment is not known; d.mu is held.
func (d *Detector) trouble() error {
	if !d.settled {
		return errUnknown
	}
	for t := range topics {
		w := d.topics[t]
		switch {
		case w == nil: // it is not served
		case !w.listed && w.err != nil:
			return fmt.Errorf("watch %s: %w", kinds[t], w.err)
		case !w.listed:
			return errUnknown
		}
	}
	return nil
}

// state is all that packages may see; d.mu is held.
func (d *Detector) state() map[string]manifestsv1alpha1.PackageEnvironment {
	all := map[string]manifestsv1alpha1.PackageEnvironment{"": d.cluster()}
	for _, hosted := range d.hosted() {
		env := d.cluster()
		env.HyperShift.HostedCluster = hosted
		all[hosted.HostedClusterNamespace] = env
	}
	return all
}

// hosted returns the hosted clusters in the order of their names, so that of two
// with one namespace, which clusters "b" in "a-c" and "c-b" in "a" have, it is always the
// same one that counts; d.mu is held.
func (d *Detector) hosted() []*manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster {
	w := d.topics[hostedClusters]
	if w == nil {
		return nil
	}
	var all []*manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster
	for _, name := range slices.Sorted(maps.Keys(w.found)) {
		all = append(all, w.found[name].(*manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster))
	}
	return all
}

// cluster is the environment without what depends on a namespace; d.mu is held.
func (d *Detector) cluster() manifestsv1alpha1.PackageEnvironment {
	env := manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: d.version}}
	if version, ok := d.one(clusterVersion).(string); ok {
		env.OpenShift = &manifestsv1alpha1.PackageEnvironmentOpenShift{Version: version}
		env.OpenShift.Managed, _ = d.one(managedData).(*manifestsv1alpha1.PackageEnvironmentManagedOpenShift)
	}
	env.Proxy, _ = d.one(clusterProxy).(*manifestsv1alpha1.PackageEnvironmentProxy)
	if d.topics[hostedClusters] != nil {
		env.HyperShift = &manifestsv1alpha1.PackageEnvironmentHyperShift{}
	}
	return env
}

// one returns what is known of a topic with one object, nil where it has none.
func (d *Detector) one(t topic) any {
	if w := d.topics[t]; w != nil {
		for _, found := range w.found {
			return found
		}
	}
	return nil
}

// For returns what a package in a namespace sees, or, where that is empty, a
// ClusterPackage. err is why that is not known; waiting tells that it will be in
// a moment.
func (d *Detector) For(namespace string) (env manifestsv1alpha1.PackageEnvironment, waiting bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.trouble(); err != nil {
		return env, errors.Is(err, errUnknown), err
	}
	env = d.cluster()
	for _, hosted := range d.hosted() {
		if hosted.HostedClusterNamespace == namespace {
			env.HyperShift.HostedCluster = hosted
		}
	}
	return env, false, nil
}
