package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// losses returns the deleted objects and changed definitions that take data with them, sorted by
// object.
func (s *simulation) losses(ctx context.Context) ([]DataLoss, error) {
	var found []DataLoss
	for _, key := range sortedKeys(s.objects) {
		o := s.objects[key]
		if o.live == nil {
			continue
		}
		// A replaced object has lost its data, even if one with its name exists afterwards.
		replaced := o.now != nil && o.now.GetUID() != o.live.GetUID()
		switch {
		case (o.now == nil || replaced) && !o.released && o.changed:
			loss, err := s.deletion(ctx, key, o.live)
			if err != nil {
				return nil, err
			}
			if loss.Message != "" {
				found = append(found, loss)
			}

		case key.GroupKind() == definitionKind && o.now != nil:
			for _, text := range definitionLosses(definitionOf(o.live), definitionOf(o.now)) {
				found = append(found, DataLoss{Object: objectdiff.Short(key), Message: text})
			}
		}
	}

	return found, nil
}

// deletion describes the data that is deleted along with an object. The message is empty if there
// is none.
func (s *simulation) deletion(ctx context.Context, key objects.Key, live *unstructured.Unstructured) (DataLoss, error) {
	loss := DataLoss{Object: objectdiff.Short(key)}
	switch key.GroupKind() {
	case definitionKind:
		loss.Message = s.resourcesGo(ctx, definitionOf(live))
	case namespaceKind:
		others, err := s.bystandersIn(ctx, key.Name)
		if err != nil {
			return loss, err
		}
		loss.Message, loss.others = "everything in it is deleted", others != ""
		if loss.others {
			loss.Message += ", including " + others
		}
	case statefulSetKind:
		if policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); policy == "Delete" {
			loss.Message = "its claims are deleted with it, because of spec.persistentVolumeClaimRetentionPolicy"
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		loss.Message = "its volume is released, and deleted if its reclaim policy is Delete"
	case schema.GroupKind{Kind: "PersistentVolume"}:
		loss.Message = "its stored data might be lost"
	}

	return loss, nil
}

// statefulSetKind is the kind whose deletion can delete volume claims.
var statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

// resourcesGo counts the objects that are deleted along with their definition, except for those
// that the package itself deletes before it.
func (s *simulation) resourcesGo(ctx context.Context, crd *crdType) string {
	plural := crd.Spec.Names.Plural
	// One item suffices, because the API server reports the number of the remaining ones.
	list, served, err := s.resources(ctx, crd, 1)
	switch {
	case !served:
		return ""
	case err != nil:
		return "all " + plural + " go with it"
	}

	n, other := int64(len(list.Items))+ptr.Deref(list.RemainingItemCount, 0), ""
	// The package's own resources are listed as deletions, so they are not counted again.
	for key, o := range s.objects {
		if key.GroupKind() == definedKind(crd) && o.live != nil && o.now == nil && !o.released {
			n, other = n-1, "other "
		}
	}

	switch {
	case n <= 0:
		return ""
	case n == 1:
		return "the only " + other + "object of its kind is deleted with it"
	default:
		return fmt.Sprintf("all %d %s are deleted with it", n, other+plural)
	}
}

// resources lists the metadata of the custom resources of a definition, which might not be served.
func (s *simulation) resources(ctx context.Context, crd *crdType, limit int64) (list *metav1.PartialObjectMetadataList, served bool, err error) {
	mapping, err := s.Mapper.RESTMapping(definedKind(crd))
	if err != nil {
		return nil, false, nil // such a kind is unknown
	}
	list, err = s.Metadata.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: limit})
	return list, apply.Classify(err) != apply.NotServed, err
}

// namespaceKind is the kind whose deletion also deletes objects of other owners.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// bystanders describes other owners' objects that are deleted along with a namespace; empty for none.
// more means that there might be others, which were not listed.
func bystanders(keys []objects.Key, more bool) string {
	if len(keys) == 0 {
		return ""
	}
	count := fmt.Sprintf("%d objects that do", len(keys))
	if len(keys) == 1 {
		count = "1 object that does"
	}

	if more {
		count = "at least " + count
	}

	var names []string
	for _, key := range keys[:min(len(keys), resourcesNamed)] {
		names = append(names, key.Kind+" "+key.Name)
	}

	if n := len(keys) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return count + " not belong to the package: " + strings.Join(names, ", ")
}

// bystandersIn describes the objects in a namespace that do not belong to the package and that no other
// object there has created.
func (s *simulation) bystandersIn(ctx context.Context, namespace string) (string, error) {
	lists, err := s.Discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	// If only some groups fail, the kinds of the others are still listed.
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return "", fmt.Errorf("read the kinds that the API server serves: %w", err)
	}
	partial := err != nil

	var resources []schema.GroupVersionResource
	var kinds []schema.GroupVersionKind
	// Kinds without the verb delete, such as component statuses, are not objects of a user.
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, r := range list.APIResources {
			resources, kinds = append(resources, gv.WithResource(r.Name)), append(kinds, gv.WithKind(r.Kind))
		}
	}

	items, more, err := s.list(ctx, namespace, resources, kinds)
	return bystanders(s.othersOf(items), partial || more), err
}

// list lists the objects of some kinds in a namespace. more means that there might be others: the
// user may not list their kinds, or the API server cannot list them now, for example because their
// webhook does not answer.
func (s *simulation) list(
	ctx context.Context, namespace string, resources []schema.GroupVersionResource, kinds []schema.GroupVersionKind,
) (items []metav1.PartialObjectMetadata, more bool, err error) {
	for i := range resources {
		list, err := s.Metadata.Resource(resources[i]).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: resourcesListed})
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			// A kind that is not served or cannot be listed has no objects that a user could lose.
			more = more || !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err)
			continue
		}

		more = more || list.Continue != ""
		for _, item := range list.Items {
			item.SetGroupVersionKind(kinds[i])
			items = append(items, item)
		}
	}

	return items, more, nil
}

// othersOf returns the objects of a namespace that do not belong to the package and that neither
// another of them nor Kubernetes has created.
func (s *simulation) othersOf(items []metav1.PartialObjectMetadata) []objects.Key {
	// The garbage collector deletes owned objects, so only their owners are named.
	there, found := map[types.UID]bool{}, map[types.UID]objects.Key{}
	for i := range items {
		there[items[i].UID] = true
	}

	for i := range items {
		m := &items[i]
		gk := m.GroupVersionKind().GroupKind()
		key := objects.Key{Group: gk.Group, Kind: gk.Kind, Namespace: m.Namespace, Name: m.Name}
		o := s.objects[key]
		owned := slices.ContainsFunc(m.OwnerReferences, func(ref metav1.OwnerReference) bool { return there[ref.UID] })
		if owned || o != nil && !o.released || ofKubernetes(key) {
			continue
		}
		if _, known := found[m.UID]; !known { // a kind can be served in several groups
			found[m.UID] = key
		}
	}

	return slices.SortedFunc(maps.Values(found), objects.Key.Compare)
}

// ofKubernetes reports whether Kubernetes itself creates an object, in every namespace or as a
// trace of another object.
func ofKubernetes(key objects.Key) bool {
	switch key.Kind {
	case "Event", "Endpoints", "PodMetrics":
		return true
	case "ServiceAccount":
		return key.Name == "default"
	case "ConfigMap":
		return key.Name == "kube-root-ca.crt"
	}
	return false
}
