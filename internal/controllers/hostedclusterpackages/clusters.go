package hostedclusterpackages

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// hostedClusterKind is HyperShift's. Of its objects only metadata and the condition Available are read, which are the
// same in all versions.
var hostedClusterKind = schema.GroupKind{Group: "hypershift.openshift.io", Kind: "HostedCluster"}

// controlPlaneKind is HyperShift's, too: an object in the namespace of each control plane, of which metadata are read.
var controlPlaneKind = schema.GroupKind{Group: "hypershift.openshift.io", Kind: "HostedControlPlane"}

var (
	errUnknown   = errors.New("the hosted clusters are being listed")
	errNotServed = errors.New("the cluster serves no HostedClusters (hypershift.openshift.io)")
	errNoPlanes  = errors.New("the cluster serves no HostedControlPlanes (hypershift.openshift.io)")
)

// hostedCluster is what is kept of a HostedCluster.
type hostedCluster struct {
	key types.NamespacedName
	// namespace of its control plane.
	namespace           string
	labels              map[string]string
	available, deleting bool
	// of is the hosted cluster that a control plane names.
	of string
}

// inTheirNamespaces returns the hosted clusters as their control planes show them. Who may create HostedClusters chooses the
// names of namespaces: one without its control plane in the namespace is not available, so that nothing is installed there, and
// one whose namespace has the control plane of another is left out.
func inTheirNamespaces(all, planes []hostedCluster) []hostedCluster {
	in := map[string][]hostedCluster{}
	for _, p := range planes {
		in[p.key.Namespace] = append(in[p.key.Namespace], p)
	}
	var counted []hostedCluster
	for _, c := range all {
		own := slices.ContainsFunc(in[c.namespace], func(p hostedCluster) bool {
			return p.key.Name == c.key.Name && objects.IsControlPlaneOf(p.of, c.key.Namespace, c.key.Name)
		})
		if c.available = c.available && own; own || len(in[c.namespace]) == 0 {
			counted = append(counted, c)
		}
	}
	return counted
}

// hostedClusters returns those by namespace and name, or why they are not known.
func (r *Reconciler) hostedClusters() ([]hostedCluster, error) {
	all, err := r.clusters.all()
	if err != nil {
		return nil, err
	}
	planes, err := r.planes.all()
	if err != nil {
		return nil, err
	}
	return inTheirNamespaces(all, planes), nil
}

func hostedClusterOf(obj metav1.Object) hostedCluster {
	c := hostedCluster{
		key:       types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		namespace: objects.HostedNamespace(obj.GetNamespace(), obj.GetName()), of: obj.GetAnnotations()[objects.HostedClusterAnnotation],
		labels: maps.Clone(obj.GetLabels()), deleting: obj.GetDeletionTimestamp() != nil,
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return c
	}
	status, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	conditions, _ := status.([]any)
	for _, entry := range conditions {
		if condition, _ := entry.(map[string]any); condition["type"] == "Available" {
			c.available = condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return c
}

func (c hostedCluster) equal(o hostedCluster) bool {
	return c.key == o.key && c.of == o.of && c.available == o.available && c.deleting == o.deleting && maps.Equal(c.labels, o.labels)
}

// clusters keeps the hosted clusters up to date, from Start on. It is safe for concurrent use.
type clusters struct {
	// kind is that of hosted clusters or their control planes, and absent is the error where it is not served.
	kind   schema.GroupKind
	absent error
	// listen watches a selection until the context ends.
	listen func(context.Context, livestate.Selection, livestate.Listener)
	// mapping returns the mapping of a served kind, as [livestate.Cache.Mapping].
	mapping func(schema.GroupKind, string) (*meta.RESTMapping, error)
	// changed is called when a hosted cluster changed, or whether they are known. It must not block.
	changed func()

	wake chan struct{}
	mu   sync.Mutex
	// current is nil while there is no watch; err is why not.
	current *clusterWatch
	err     error
}

// clusterWatch is the watch of one version of the kind.
type clusterWatch struct {
	clusters *clusters
	resource schema.GroupVersionResource
	stop     context.CancelFunc
	listed   bool
	err      error
	found    map[types.NamespacedName]hostedCluster
}

// NeedLeaderElection reports whether only the leader watches.
func (c *clusters) NeedLeaderElection() bool { return true }

// Start watches until the context ends, whenever the kind is served.
func (c *clusters) Start(ctx context.Context) error {
	delay := limits.WatchBackoffMin
	for {
		var again <-chan time.Time
		if !c.refresh(ctx) { // no kind changes when discovery becomes known, and looking it up takes no request
			again = time.After(delay)
			delay = min(2*delay, limits.WatchBackoffMax)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-again:
		}
	}
}

// kindChanged is called with a kind that is served in another way than before. It does not block.
func (c *clusters) kindChanged(gk schema.GroupKind) {
	if gk != c.kind {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// refresh starts or ends the watch as the kind is served, and reports whether that is known.
func (c *clusters) refresh(ctx context.Context) (known bool) {
	mapping, err := c.mapping(c.kind, "")
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.current != nil && c.current.resource == mapping.Resource:
	case err == nil:
		c.end(errUnknown)
		watching, stop := context.WithCancel(ctx)
		c.current = &clusterWatch{clusters: c, resource: mapping.Resource, stop: stop, found: map[types.NamespacedName]hostedCluster{}}
		current := c.current
		panics.Go(ctx, "watching hosted clusters", func() {
			c.listen(watching, livestate.Selection{Resource: mapping.Resource, Whole: true}, current)
		})
	case meta.IsNoMatchError(err):
		if !errors.Is(c.err, c.absent) {
			c.end(c.absent)
			c.changed()
		}
	case c.current == nil:
		c.err = errUnknown
		return false
	}
	return true
}

// end ends the watch. c.mu is held.
func (c *clusters) end(why error) {
	if c.current != nil {
		c.current.stop()
	}
	c.current, c.err = nil, why
}

// all returns the hosted clusters by namespace and name. The error is errUnknown for a moment, else why they are not known.
func (c *clusters) all() ([]hostedCluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch w := c.current; {
	case w == nil && c.err == nil:
		return nil, errUnknown
	case w == nil:
		return nil, c.err
	case w.listed:
		return slices.SortedFunc(maps.Values(w.found), func(a, b hostedCluster) int {
			return cmp.Or(strings.Compare(a.key.Namespace, b.key.Namespace), strings.Compare(a.key.Name, b.key.Name))
		}), nil
	case w.err != nil:
		return nil, w.err
	}
	return nil, errUnknown
}

// change changes what is known by the watch, and reports that where it does.
func (w *clusterWatch) change(do func() (changed bool)) {
	if w.changes(do) {
		w.clusters.changed()
	}
}

func (w *clusterWatch) changes(do func() (changed bool)) bool {
	w.clusters.mu.Lock()
	defer w.clusters.mu.Unlock()
	return w.clusters.current == w && do()
}

// Listed receives all hosted clusters.
func (w *clusterWatch) Listed(all []metav1.Object) {
	w.change(func() bool {
		found := map[types.NamespacedName]hostedCluster{}
		for _, obj := range all {
			c := hostedClusterOf(obj)
			found[c.key] = c
		}
		changed := !w.listed || !maps.EqualFunc(w.found, found, hostedCluster.equal)
		w.listed, w.found = true, found
		return changed
	})
}

// Changed receives a hosted cluster that is new or changed.
func (w *clusterWatch) Changed(obj metav1.Object) {
	w.change(func() bool {
		c := hostedClusterOf(obj)
		before, known := w.found[c.key]
		w.found[c.key] = c
		return !known || !before.equal(c)
	})
}

// Deleted receives a hosted cluster that is gone.
func (w *clusterWatch) Deleted(obj metav1.Object) {
	w.change(func() bool {
		delete(w.found, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()})
		return true
	})
}

// Failed receives why the watch does not work at present, and nil when it does again.
func (w *clusterWatch) Failed(err error) {
	w.change(func() bool {
		changed := !w.listed && (w.err == nil) != (err == nil)
		w.err = err
		return changed
	})
}
