package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// listPage is how many objects one page of a listing holds. A namespace is listed
// as long as that takes fewer requests than asking for each object.
const listPage = 500

// existing returns the metadata of those objects that exist: one listing for
// each kind and namespace, or one GET where only one object is asked for. Those
// who ask at the same time share a listing.
func (e *Executor) existing(ctx context.Context, steps []phases.Step) (map[objects.Key]*objects.Observed, error) {
	groups := map[group][]objects.Key{}
	versions := map[group]string{}
	for _, s := range steps {
		g := group{s.Key.GroupKind(), s.Key.Namespace}
		groups[g] = append(groups[g], s.Key)
		versions[g] = s.Desired.Version
	}
	found := map[objects.Key]*objects.Observed{}
	for g, keys := range groups {
		mapping, err := e.Live.Mapping(g.kind, versions[g])
		if meta.IsNoMatchError(err) {
			continue // nothing exists of a kind that is not served
		}
		if err != nil {
			return nil, err
		}
		seen, err := e.looks.look(ctx, g, keys, func(all []objects.Key) (map[objects.Key]*objects.Observed, error) {
			return lookUp(ctx, e.Metadata.Resource(mapping.Resource).Namespace(g.namespace), all)
		})
		if err != nil {
			return nil, fmt.Errorf("cannot look for objects that exist already: %w", err)
		}
		for _, key := range keys {
			if seen[key] != nil {
				found[key] = seen[key]
			}
		}
	}
	return found, nil
}

// lookUp returns those of the objects of one kind and namespace that exist.
func lookUp(ctx context.Context, resource metadata.ResourceInterface, keys []objects.Key) (map[objects.Key]*objects.Observed, error) {
	wanted := make(map[string]objects.Key, len(keys))
	for _, key := range keys {
		wanted[key.Name] = key
	}
	found := map[objects.Key]*objects.Observed{}
	opts := metav1.ListOptions{Limit: listPage}
	for range len(wanted) / 2 {
		page, err := resource.List(ctx, opts)
		if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if key, ok := wanted[page.Items[i].Name]; ok {
				found[key] = glimpse(&page.Items[i])
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return found, nil
		}
	}
	for _, key := range wanted {
		if found[key] != nil {
			continue
		}
		one, err := resource.Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[key] = glimpse(one)
	}
	return found, nil
}

// glimpse is what the collision rules need of an object.
func glimpse(m *metav1.PartialObjectMetadata) *objects.Observed {
	return &objects.Observed{
		UID: m.UID, ResourceVersion: m.ResourceVersion, Terminating: m.DeletionTimestamp != nil,
		Finalizers: m.Finalizers, Owners: m.OwnerReferences,
	}
}
