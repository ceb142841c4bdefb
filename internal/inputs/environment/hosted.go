package environment

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// These errors are why hosted clusters are unknown. The detector reads only metadata and the
// condition Available of HostedClusters, which are the same in all versions. It reads only metadata
// of HostedControlPlanes, which are objects in the namespace of each control plane.
var (
	ErrNotServed = errors.New("the cluster serves no HostedClusters (hypershift.openshift.io)")
	ErrNoPlanes  = errors.New("the cluster serves no HostedControlPlanes (hypershift.openshift.io)")
)

// HostedCluster is a cluster of HyperShift.
type HostedCluster struct {
	Key types.NamespacedName
	// Namespace is the namespace of its control plane.
	Namespace           string
	Labels              map[string]string
	Available, Deleting bool
}

func (c HostedCluster) equal(o HostedCluster) bool {
	return c.Key == o.Key && c.Available == o.Available && c.Deleting == o.Deleting && maps.Equal(c.Labels, o.Labels)
}

// hosted is the part of a HostedCluster that is kept: what packages see, and its state.
type hosted struct {
	seen  *manifestsv1alpha1.PackageEnvironmentHyperShiftHostedCluster
	state HostedCluster
}

func hostedOf(obj metav1.Object) hosted {
	seen := seenOf(obj)
	return hosted{seen, HostedCluster{
		Key:       types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		Namespace: seen.HostedClusterNamespace, Labels: seen.Metadata.Labels,
		Available: isAvailable(obj), Deleting: obj.GetDeletionTimestamp() != nil,
	}}
}

func isAvailable(obj metav1.Object) (available bool) {
	status, _, _ := unstructured.NestedFieldNoCopy(contentOf(obj), "status", "conditions")
	conditions, _ := status.([]any)
	for _, entry := range conditions {
		if condition, _ := entry.(map[string]any); condition["type"] == "Available" {
			available = condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return available
}

// HostedClusters returns the hosted clusters by namespace and name, or why they are unknown. This
// is briefly ErrUnknown at the start. The result is read-only.
func (d *Detector) HostedClusters() ([]HostedCluster, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clusters, d.unlisted
}

// hostedClusters checks the hosted clusters against their control planes. Users who can create
// HostedClusters choose the names of namespaces. A hosted cluster whose control plane is not in its
// namespace is reported as unavailable, so that nothing is installed there. If the namespace has
// the control plane of another one, it is left out. d.mu is held.
func (d *Detector) hostedClusters() ([]HostedCluster, error) {
	if err := d.unlistedOf(hostedClusters, ErrNotServed); err != nil {
		return nil, err
	}
	if err := d.unlistedOf(hostedControlPlanes, ErrNoPlanes); err != nil {
		return nil, err
	}

	occupied := map[string]bool{}
	for key := range d.watches[hostedControlPlanes].found {
		namespace, _, _ := strings.Cut(key, "/")
		occupied[namespace] = true
	}

	var all []HostedCluster
	for _, found := range d.watches[hostedClusters].found {
		h := found.(hosted)
		own := d.runs(h.seen)
		if h.state.Available = h.state.Available && own; own || !occupied[h.state.Namespace] {
			all = append(all, h.state)
		}
	}

	slices.SortFunc(all, func(a, b HostedCluster) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return all, nil
}

// unlistedOf returns why the objects of a topic are unknown, or nil if they are known. d.mu is
// held.
func (d *Detector) unlistedOf(t topic, absent error) error {
	switch w := d.watches[t]; {
	case w == nil && d.complete:
		return absent
	case w == nil || w.resource.Empty():
		return ErrUnknown
	case w.listed:
		return nil
	case w.err != nil:
		return w.err
	}
	return ErrUnknown
}
