package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// listPage is how many objects one page of a listing holds. A namespace is listed
// as long as that takes fewer requests than asking for each object.
const listPage = 500

// group is what one listing can answer for.
type group struct {
	kind      schema.GroupKind
	namespace string
}

// existing returns the metadata of those objects that exist: one listing for
// each kind and namespace, or one GET where only one object is asked for.
func (e *Executor) existing(ctx context.Context, steps []phases.Step) (map[objects.Key]*objects.Observed, error) {
	groups := map[group][]phases.Step{}
	for _, s := range steps {
		g := group{s.Key.GroupKind(), s.Key.Namespace}
		groups[g] = append(groups[g], s)
	}
	found := map[objects.Key]*objects.Observed{}
	for g, members := range groups {
		mapping, err := e.Live.Mapping(g.kind, members[0].Desired.Version)
		if meta.IsNoMatchError(err) {
			continue // nothing exists of a kind that is not served
		}
		if err != nil {
			return nil, err
		}
		if err := e.lookUp(ctx, mapping, g, members, found); err != nil {
			return nil, fmt.Errorf("cannot look for objects that exist already: %w", err)
		}
	}
	return found, nil
}

func (e *Executor) lookUp(ctx context.Context, mapping *meta.RESTMapping, g group, members []phases.Step, found map[objects.Key]*objects.Observed) error {
	resource := e.Metadata.Resource(mapping.Resource).Namespace(g.namespace)
	opts := metav1.ListOptions{Limit: listPage}
	for range len(members) / 2 {
		page, err := resource.List(ctx, opts)
		if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) {
			break
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			key := objects.Key{Group: g.kind.Group, Kind: g.kind.Kind, Namespace: g.namespace, Name: page.Items[i].Name}
			found[key] = glimpse(&page.Items[i])
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
	for _, s := range members {
		if found[s.Key] != nil {
			continue
		}
		one, err := resource.Get(ctx, s.Key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		found[s.Key] = glimpse(one)
	}
	return nil
}

// glimpse is what the collision rules need of an object.
func glimpse(m *metav1.PartialObjectMetadata) *objects.Observed {
	return &objects.Observed{
		UID: m.UID, ResourceVersion: m.ResourceVersion, Terminating: m.DeletionTimestamp != nil,
		Finalizers: m.Finalizers, Owners: m.OwnerReferences,
	}
}
