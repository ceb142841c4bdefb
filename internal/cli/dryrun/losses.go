package dryrun

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		loss.Message, loss.others = "everything in it is deleted", len(others.keys) > 0
		if loss.others {
			loss.Message += ", including " + others.String()
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
