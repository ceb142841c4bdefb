package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
)

// listPage is the number of objects in one page of a listing. A namespace is listed as long as that
// takes fewer requests than reading each object.
const listPage = 500

// unread is the reason why the objects of one kind and namespace, with the key as an example, could
// not be looked for.
type unread struct {
	key objects.Key
	err error
}

// existing returns the metadata of the objects that exist, with one listing for each kind and
// namespace, or one GET for a single object. Concurrent callers share a listing.
func (e *Engine) existing(ctx context.Context, steps []phases.Step) (found, []unread) {
	var order []group
	groups := map[group][]objects.Key{}
	versions := map[group]string{}
	for _, s := range steps {
		g := group{s.Key.GroupKind(), s.Key.Namespace}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], s.Key)
		versions[g] = s.Desired.Version
	}

	existing, failed := found{}, []unread{}
	for _, g := range order {
		keys := groups[g]
		mapping, err := e.Cluster.Mapping(g.kind, versions[g])
		if meta.IsNoMatchError(err) || errors.Is(e.Cluster.State(g.kind).Err, livestate.ErrNotWatchable) {
			continue // nothing exists of a kind that is not served, or not stored
		}
		seen := found{}
		if err == nil {
			seen, err = e.lookups.lookup(ctx, g, keys, func(all []objects.Key) (found, error) {
				return e.find(ctx, mapping, g, all)
			})
		}
		if err != nil {
			failed = append(failed, unread{keys[0], fmt.Errorf("cannot look for objects that exist already: %w", err)})
		}
		for _, key := range keys {
			if seen[key] != nil {
				existing[key] = seen[key]
			}
		}
	}

	return existing, failed
}

// absent returns the objects that do not exist, out of those to be confirmed. Several of one kind
// and namespace take one listing, with any label, because an object whose label has not reached the
// watch yet exists, too. Objects that no listing covers are read one by one.
func (e *Engine) absent(ctx context.Context, steps []phases.Step) map[objects.Key]bool {
	groups := map[group][]objects.Key{}
	for _, s := range steps {
		if s.Action == phases.Confirm && s.Live == nil {
			g := group{s.Key.GroupKind(), s.Key.Namespace}
			groups[g] = append(groups[g], s.Key)
		}
	}

	absent := map[objects.Key]bool{}
	for g, keys := range groups {
		mapping, err := e.Cluster.Mapping(g.kind, "")
		if err != nil || len(keys) == 1 {
			continue
		}
		seen, err := e.lookUp(ctx, mapping, keys, "")
		for _, key := range keys {
			if err == nil && seen[key] == nil {
				absent[key] = true
			}
		}
	}

	return absent
}

// find looks for objects of one kind and namespace. It does not list objects with our label if a
// watch shows them, which are nearly all objects in a namespace full of packages. It includes
// objects that the watch shows before or after the listing, because an object can get or lose the
// label meanwhile.
//
// The watch can be behind by as long as an event takes, like any answer when it is acted on. If it
// does not show an object yet, the create is refused. If it still shows an object that was deleted,
// that object is read.
func (e *Engine) find(ctx context.Context, mapping *meta.RESTMapping, g group, keys []objects.Key) (found, error) {
	if !e.watches(g) {
		return e.lookUp(ctx, mapping, keys, "")
	}

	before := make([]bool, len(keys))
	for i, key := range keys {
		_, before[i] = e.Cluster.Observed(key)
	}

	seen, err := e.lookUp(ctx, mapping, keys, e.Tracker.Names.Unselected())
	if err != nil {
		return nil, err
	}
	if !e.watches(g) {
		return e.lookUp(ctx, mapping, keys, "") // the watch ended meanwhile
	}

	for i, key := range keys {
		if _, shown := e.Cluster.Observed(key); seen[key] != nil || !shown && !before[i] {
			continue
		}
		if err := e.lookAt(ctx, mapping, key, seen); err != nil {
			return nil, err
		}
	}

	return seen, nil
}

// watches reports whether the watch shows all objects of a kind with our label.
func (e *Engine) watches(g group) bool {
	state := e.Cluster.State(g.kind)
	return state.Synced && state.Err == nil
}

// lookUp returns the existing objects among the given ones of one kind and namespace. A listing
// covers the objects that the selector selects.
func (e *Engine) lookUp(ctx context.Context, mapping *meta.RESTMapping, keys []objects.Key, selector string) (found, error) {
	wanted := make(map[string]objects.Key, len(keys))
	for _, key := range keys {
		wanted[key.Name] = key
	}

	seen := found{}
	opts := metav1.ListOptions{Limit: listPage, LabelSelector: selector}
	// Each page is one request: beyond this number, single reads of the remaining objects are
	// cheaper.
	for range len(wanted) / 2 {
		page, err := e.Cluster.ListMetadata(ctx, mapping, keys[0].Namespace, opts)
		if errors.Is(err, reflector.ErrTooLarge) {
			opts.Limit = reflector.SmallerPage(opts.Limit)
			continue
		}
		if apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if key, ok := wanted[page.Items[i].Name]; ok {
				seen[key] = e.observeMetadata(&page.Items[i])
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return seen, nil
		}
	}

	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		key := wanted[name]
		if seen[key] != nil {
			continue
		}
		if err := e.lookAt(ctx, mapping, key, seen); err != nil {
			return nil, err
		}
	}

	return seen, nil
}

// lookAt reads one object, and adds it if it exists.
func (e *Engine) lookAt(ctx context.Context, mapping *meta.RESTMapping, key objects.Key, seen found) error {
	one, err := e.Cluster.GetMetadata(ctx, mapping, key.Namespace, key.Name)
	if apply.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}

	seen[key] = e.observeMetadata(one)
	return nil
}

// observeMetadata returns a record with the fields that the collision rules read.
func (e *Engine) observeMetadata(m *metav1.PartialObjectMetadata) *objects.Observed {
	names := e.Tracker.Names
	return &objects.Observed{
		UID: m.UID, ResourceVersion: m.ResourceVersion, Terminating: m.DeletionTimestamp != nil,
		Finalizers: len(m.Finalizers) > 0, Held: objects.HeldBy(m.Finalizers, nil), Owners: names.References(m.OwnerReferences, m.Annotations),
		AdoptableBy: m.Annotations[names.AdoptableByAnnotation],
		Wrote:       drift.HasUpdates(names, m.ManagedFields) || drift.HasApply(names, m.ManagedFields),
	}
}
