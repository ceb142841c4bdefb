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
	"k8s.io/apimachinery/pkg/util/wait"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objects"
)

// Options are the dependencies of a Detector.
type Options struct {
	// Listen watches a selection until the context ends.
	Listen func(context.Context, livestate.Selection, livestate.Listener)
	// Mapping returns the mapping of a served kind. It returns livestate.ErrNotReady or a NoMatch,
	// or any other error if this is unknown.
	Mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error)
	// Changed is called when the environment has changed or is known for the first time. It must
	// not block.
	Changed func()
	// HostedChanged is called when HostedClusters returns other clusters or another error. It must
	// not block. It can be nil.
	HostedChanged func()
}

// Detector keeps the environment up to date. It is safe for concurrent use.
type Detector struct {
	options Options

	mu      sync.Mutex
	ctx     context.Context
	version string
	// complete means that discovery has answered for every topic.
	complete bool
	// seen is the last result of state.
	seen map[string]manifestsv1alpha1.PackageEnvironment
	// reported is the last result of unknown.
	reported error
	// clusters and unlisted are the last results of hostedClusters.
	clusters []HostedCluster
	unlisted error
	watches  [topics]*watch
}

// topic is one part of the environment.
type topic int

const (
	clusterVersion topic = iota
	managedData
	clusterProxy
	hostedClusters
	hostedControlPlanes
	topics
)

// table describes the topics.
var table = [topics]struct {
	// kind is served if the cluster has this part.
	kind schema.GroupKind
	// selection selects the objects, by default all objects of kind.
	selection livestate.Selection
	// read returns the part of an object to keep.
	read func(metav1.Object) any
}{
	clusterVersion: {
		schema.GroupKind{Group: "config.openshift.io", Kind: "ClusterVersion"},
		livestate.Selection{Name: "version"}, func(o metav1.Object) any { return versionOf(o) },
	},
	managedData: {
		schema.GroupKind{Group: "config.openshift.io", Kind: "ClusterVersion"},
		livestate.Selection{
			Resource:  schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Namespace: "openshift-config", Name: "osd-cluster-metadata",
		}, func(o metav1.Object) any { return managedOf(o) },
	},
	clusterProxy: {
		schema.GroupKind{Group: "config.openshift.io", Kind: "Proxy"},
		livestate.Selection{Name: "cluster"}, func(o metav1.Object) any { return proxyOf(o) },
	},
	hostedClusters: {
		schema.GroupKind{Group: "hypershift.openshift.io", Kind: "HostedCluster"},
		livestate.Selection{}, func(o metav1.Object) any { return hostedOf(o) },
	},
	hostedControlPlanes: {
		schema.GroupKind{Group: "hypershift.openshift.io", Kind: "HostedControlPlane"},
		livestate.Selection{}, func(o metav1.Object) any { return o.GetAnnotations()[objects.HostedClusterAnnotation] },
	},
}

func (t topic) selection(resource schema.GroupVersionResource) livestate.Selection {
	selection := table[t].selection
	if selection.Whole = true; selection.Resource.Empty() {
		selection.Resource = resource
	}
	return selection
}

// watch is the watch of one topic, while its kind is served.
type watch struct {
	resource schema.GroupVersionResource
	stop     context.CancelFunc
	// listed means that all objects are known. err is why the watch fails.
	listed bool
	err    error
	// found has the objects by "namespace/name", in the form that packages see.
	found map[string]any
}

// New returns a Detector that works once Start is called. version is the API server's version, as
// far as it is known yet.
func New(options Options, version string) *Detector {
	return &Detector{options: options, version: version, reported: ErrUnknown, unlisted: ErrUnknown}
}

// NeedLeaderElection reports whether only the leader watches.
func (d *Detector) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (d *Detector) Start(ctx context.Context) error {
	d.change(func() { d.ctx = ctx })
	_ = wait.PollUntilContextCancel(ctx, startRetry, true, func(context.Context) (bool, error) { return d.refresh(), nil })
	<-ctx.Done()
	return nil
}

const (
	// startRetry is the pause before discovery is queried again at the start.
	startRetry = 10 * time.Millisecond
	// unavailableRetry is the pause before an unavailable group is looked up again. The lookup
	// costs no request.
	unavailableRetry = 5 * time.Second
)

// VersionChanged sets the version of the API server.
func (d *Detector) VersionChanged(version string) {
	d.change(func() { d.version = version })
}

// KindChanged reports that a kind is served differently than before.
func (d *Detector) KindChanged(gk schema.GroupKind) {
	for _, topic := range table {
		if topic.kind == gk {
			d.refresh()
			return
		}
	}
}

// refresh starts and stops watches according to discovery, and reports whether discovery has
// answered for all topics.
func (d *Detector) refresh() (complete bool) {
	d.change(func() {
		if complete = true; d.ctx == nil {
			return
		}
		for t := range topics {
			mapping, err := d.options.Mapping(table[t].kind, "")
			switch w := d.watches[t]; {
			case err == nil:
				d.start(t, mapping.Resource)
			case meta.IsNoMatchError(err):
				d.end(t)
			case errors.Is(err, livestate.ErrNotReady):
				complete = false
			case w == nil:
				d.watches[t] = d.unavailable(err)
			case w.resource.Empty():
				w.err = err
			}
		}
		d.complete = complete
	})

	return complete
}

// unavailable returns the watch of a topic whose group is served by an API server that does not
// answer. It polls, because there is no event if that server turns out not to serve the topic's
// kind. d.mu is held.
func (d *Detector) unavailable(err error) *watch {
	ctx, stop := context.WithCancel(d.ctx)
	panics.Go(ctx, "looking at the cluster", func() {
		_ = wait.PollUntilContextCancel(ctx, unavailableRetry, false, func(context.Context) (bool, error) {
			_ = panics.Guard(ctx, "looking at the cluster", func() error { d.refresh(); return nil }) // repeats this
			return false, nil
		})
	})
	return &watch{err: err, stop: stop}
}

// start starts the watch of a topic, unless it is running. d.mu is held.
func (d *Detector) start(t topic, resource schema.GroupVersionResource) {
	if old := d.watches[t]; old != nil && old.resource == resource {
		return
	}
	d.end(t)
	ctx, stop := context.WithCancel(d.ctx)
	w := &watch{resource: resource, stop: stop, found: map[string]any{}}
	d.watches[t] = w
	panics.Go(ctx, "watching "+resource.Resource, func() { d.options.Listen(ctx, t.selection(resource), &listener{d: d, topic: t, watch: w}) })
}

// end stops the watch of a topic; d.mu is held.
func (d *Detector) end(t topic) {
	if w := d.watches[t]; w != nil {
		w.stop()
		d.watches[t] = nil
	}
}

// change updates the environment. It calls Changed if packages see a different environment, or a
// different reason why it is unknown.
func (d *Detector) change(do func()) {
	seen, hosted := d.changes(do)
	if seen {
		d.options.Changed()
	}
	if hosted && d.options.HostedChanged != nil {
		d.options.HostedChanged()
	}
}

func (d *Detector) changes(do func()) (seen, hosted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, reported, clusters, unlisted := d.seen, d.reported, d.clusters, d.unlisted
	do()
	d.seen, d.reported = d.state(), d.unknown()
	d.clusters, d.unlisted = d.hostedClusters()
	return fmt.Sprint(reported) != fmt.Sprint(d.reported) || d.reported == nil && !reflect.DeepEqual(before, d.seen),
		!errors.Is(d.unlisted, ErrUnknown) && (fmt.Sprint(unlisted) != fmt.Sprint(d.unlisted) || !slices.EqualFunc(clusters, d.clusters, HostedCluster.equal))
}

// listener receives the objects of one topic.
type listener struct {
	d     *Detector
	topic topic
	watch *watch
}

// Listed receives all objects.
func (l *listener) Listed(all []metav1.Object) { l.d.change(func() { l.watch.list(l.topic, all) }) }

func (w *watch) list(t topic, all []metav1.Object) {
	w.listed, w.found = true, map[string]any{}
	for _, obj := range all {
		w.found[keyOf(obj)] = table[t].read(obj)
	}
}

// Changed receives an object that is new or changed.
func (l *listener) Changed(obj metav1.Object) {
	l.d.change(func() { l.watch.found[keyOf(obj)] = table[l.topic].read(obj) })
}

// Deleted receives an object that was deleted.
func (l *listener) Deleted(obj metav1.Object) {
	l.d.change(func() { delete(l.watch.found, keyOf(obj)) })
}

// Failed receives the error of the watch.
func (l *listener) Failed(err error) { l.d.change(func() { l.watch.err = err }) }

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// ErrUnknown means that the environment is not known yet.
var ErrUnknown = errors.New("the cluster is being looked at")

// unknown returns why the environment is unknown, or nil if it is known. d.mu is held.
func (d *Detector) unknown() error {
	if !d.complete {
		return ErrUnknown
	}

	for t, w := range d.watches {
		switch {
		case w == nil || w.listed:
		case w.err != nil:
			return fmt.Errorf("watch %s: %w", table[t].kind, w.err)
		default:
			return ErrUnknown
		}
	}

	return nil
}

// state returns everything that packages see, by the namespace of the hosted cluster; the empty
// namespace is for all other packages. It is slow if there are many, so change computes it only
// once per change. d.mu is held.
func (d *Detector) state() map[string]manifestsv1alpha1.PackageEnvironment {
	all := map[string]manifestsv1alpha1.PackageEnvironment{"": d.cluster()}
	for _, hosted := range d.hosted() {
		env := d.cluster()
		env.HyperShift.HostedCluster = hosted
		all[hosted.HostedClusterNamespace] = env
	}
	return all
}

// hosted returns the hosted clusters whose control plane is in their namespace, ordered by name.
// The check is necessary because users who can create HostedClusters choose the names of
// namespaces: "b" in "a-c" and "c-b" in "a" share one, and "system" in "kube" gets the cluster's
// own. d.mu is held.
func (d *Detector) hosted() []*manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster {
	var all []*manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster
	if w := d.watches[hostedClusters]; w != nil {
		for _, name := range slices.Sorted(maps.Keys(w.found)) {
			if h := w.found[name].(hosted); d.runs(h.seen) {
				all = append(all, h.seen)
			}
		}
	}
	return all
}

// runs reports whether the control plane of a hosted cluster is in its namespace. d.mu is held.
func (d *Detector) runs(hosted *manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster) bool {
	w := d.watches[hostedControlPlanes]
	if w == nil {
		return false
	}
	of, found := w.found[hosted.HostedClusterNamespace+"/"+hosted.Metadata.Name].(string)
	return found && objects.IsControlPlaneOf(of, hosted.Metadata.Namespace, hosted.Metadata.Name)
}

// cluster returns the part of the environment that is the same for all namespaces. d.mu is held.
func (d *Detector) cluster() manifestsv1alpha1.PackageEnvironment {
	env := manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: d.version}}
	if version, ok := d.single(clusterVersion).(string); ok {
		env.OpenShift = &manifestsv1alpha1.PackageEnvironmentOpenShift{Version: version}
		env.OpenShift.Managed, _ = d.single(managedData).(*manifestsv1alpha1.PackageEnvironmentManagedOpenShift)
	}
	env.Proxy, _ = d.single(clusterProxy).(*manifestsv1alpha1.PackageEnvironmentProxy)
	if d.watches[hostedClusters] != nil {
		env.HyperShift = &manifestsv1alpha1.PackageEnvironmentHyperShift{}
	}
	return env
}

// single returns the only object of a topic, or nil.
func (d *Detector) single(t topic) any {
	if w := d.watches[t]; w != nil {
		for _, found := range w.found {
			return found
		}
	}
	return nil
}

// For returns the environment that a package in a namespace sees or, if namespace is empty, a
// ClusterPackage. err is why it is unknown; waiting means that it is not known yet.
func (d *Detector) For(namespace string) (env manifestsv1alpha1.PackageEnvironment, waiting bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.unknown(); err != nil {
		return env, errors.Is(err, ErrUnknown), err
	}
	if env, found := d.seen[namespace]; found {
		return env, false, nil
	}
	return d.seen[""], false, nil
}

// Look reads once everything that packages see of a cluster, into a Detector that does not watch.
// mapping is the same as in Options; list returns the objects of a selection.
func Look(
	ctx context.Context, version string, mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error),
	list func(context.Context, livestate.Selection) ([]metav1.Object, error),
) (*Detector, error) {
	d := New(Options{Mapping: mapping, Changed: func() {}}, version)
	for t := range topics {
		served, err := mapping(table[t].kind, "")
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all, err := list(ctx, t.selection(served.Resource))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", table[t].kind, err)
		}
		d.watches[t] = &watch{}
		d.watches[t].list(t, all)
	}

	d.complete = true
	d.seen = d.state()
	return d, nil
}
