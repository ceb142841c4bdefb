package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// delete deletes the object only in the state that was decided on. If it is already being deleted,
// delete removes the finalizer of the garbage collector.
func (s *step) delete(ctx context.Context) error {
	if s.Live.Terminating {
		return s.releaseCollected(ctx)
	}

	writes, err := s.writes(ctx)
	if err != nil {
		return err
	}
	gone, live, err := writes.Delete(ctx, s.mapping, s.Key.Namespace, s.Key.Name, s.Live.UID, s.Live.ResourceVersion, s.propagation())
	if err != nil {
		return err
	}

	if gone {
		s.gone()
	} else {
		s.keep(live)
	}
	return nil
}

// releaseCollected removes the finalizer of the garbage collector, which is the only one. A DELETE
// in the background does it as well, but not for a certain version: the API server compares the
// version when the finalizer is already removed.
func (s *step) releaseCollected(ctx context.Context) error {
	patch, err := json.Marshal(append(unchanged(s.Live.UID, s.Live.ResourceVersion), map[string]any{"op": "remove", "path": "/metadata/finalizers"}))
	if err != nil {
		return err
	}
	live, err := s.patch(ctx, patch, false)
	if err == nil {
		s.keep(live)
	}
	return err
}

// propagation returns how the object is deleted. In the foreground it stays until the garbage
// collector has deleted its pods, and all later objects wait for it. A custom resource can own
// pods, too. But if it has finalizers, its controller deletes its dependents, in an order that the
// collector does not know. The engine's own kinds refuse deletion in the foreground for that
// reason.
func (s *step) propagation() metav1.DeletionPropagation {
	foreign := s.Key.Group != s.run.Tracker.Names.GroupVersion.Group
	if objects.OwnsPods(s.Key.GroupKind()) || s.custom && foreign && !s.Live.Finalizers {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// release takes our reference and labels off and leaves the object.
func (s *step) release(ctx context.Context) error {
	live, err := s.run.Cluster.Get(ctx, s.mapping, s.Key.Namespace, s.Key.Name)
	if apply.IsAbsent(err) {
		s.gone()
		return nil
	}

	if err != nil {
		return err
	}

	if ref := s.run.Tracker.Observe(s.Key, live).Controller(); ref != nil && !s.run.rollout.isOurs(*ref) {
		s.keep(live) // another one has taken it meanwhile, and the labels are its own
		return nil
	}

	patch, err := releasePatch(live, s.run.rollout)
	if err != nil {
		return err
	}

	if patch != nil {
		if _, err := s.mark(ctx, patch); err != nil {
			return err
		}
	}

	s.gone()
	return nil
}

// mark changes our marks on an object. It does so as the manager, which set them, because the
// account can lack the right or no longer exist. A manager that can write only its own kinds does
// it as the account.
func (s *step) mark(ctx context.Context, patch []byte) (*unstructured.Unstructured, error) {
	live, err := s.run.Cluster.As(objects.Account{}).Patch(ctx, s.mapping, s.Key.Namespace, s.Key.Name, patch, false)
	if _, denied := apply.AsUnauthorized(err); !denied || s.Account.IsZero() {
		return live, err
	}
	return s.patch(ctx, patch, false)
}

// retain turns the owner reference into the set's, without control.
func (s *step) retain(ctx context.Context) error {
	live, err := s.judged(ctx)
	if err != nil {
		return err
	}

	operations := append(unchanged(live.GetUID(), live.GetResourceVersion()), s.run.rollout.replaceOwners(live, s.Retainer)...)
	patch, err := json.Marshal(append(operations, s.run.rollout.restoreLabel(live)...))
	if err != nil {
		return err
	}
	if live, err = s.mark(ctx, patch); err != nil {
		return err
	}

	s.run.Cluster.Remember(s.Key, s.run.Tracker.Observe(s.Key, live))
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	*s.run.rollout.applied.At(s.Key) = phases.Applied{}
	delete(s.run.rollout.unwatchedRecords, s.Key)
	return nil
}

// replaceOwners returns the operations that replace the owner among the owners of an object by the
// set of a revision.
func (r *Rollout) replaceOwners(live *unstructured.Unstructured, by *phases.Revision) []map[string]any {
	set := objects.Reference{OwnerReference: metav1.OwnerReference{
		APIVersion: r.Owner.Names.GroupVersion.String(), Kind: by.Kind, Name: by.Name, UID: by.UID,
	}}
	if r.Owner.Remote() {
		set.Remote, set.Namespace, set.Cluster = true, r.Owner.Namespace, r.Owner.Cluster
		others := slices.DeleteFunc(r.Owner.Names.References(nil, live.GetAnnotations()), r.isOurs)
		path := "/metadata/annotations/" + strings.ReplaceAll(r.Owner.Names.OwnersAnnotation, "/", "~1")
		return []map[string]any{{"op": "add", "path": path, "value": objects.OwnersValue(append(others, set))}}
	}

	others := slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return r.isOurs(objects.Reference{OwnerReference: ref}) })
	return []map[string]any{{"op": "add", "path": "/metadata/ownerReferences", "value": append(others, set.OwnerReference)}}
}

// restoreLabel returns the operations that restore the label under which the caches find an object,
// if others removed it.
func (r *Rollout) restoreLabel(live *unstructured.Unstructured) []map[string]any {
	key, value := r.Owner.Names.ManagedLabel, r.Owner.Names.ManagedValue
	switch {
	case live.GetLabels()[key] == value:
		return nil
	case len(live.GetLabels()) == 0:
		return []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]string{key: value}}}
	}
	return []map[string]any{{"op": "add", "path": "/metadata/labels/" + strings.ReplaceAll(key, "/", "~1"), "value": value}}
}

// unchanged returns the tests of a JSON patch that an object is still the version that was read.
func unchanged(uid types.UID, resourceVersion string) []map[string]any {
	return []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(uid)},
		{"op": "test", "path": "/metadata/resourceVersion", "value": resourceVersion},
	}
}

// releasePatch returns the JSON patch that removes us from the owners, and our labels and
// annotations from the object, if it is still the version that was read; nil if the object has none
// of these.
func releasePatch(live *unstructured.Unstructured, r *Rollout) ([]byte, error) {
	ops := unchanged(live.GetUID(), live.GetResourceVersion())
	tests := len(ops)
	if r.Owner.Remote() {
		ops = append(ops, releaseAnnotation(r.Owner.Names, live, r.isOurs)...)
	} else if refs := live.GetOwnerReferences(); len(refs) > 0 {
		keep := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return r.isOurs(objects.Reference{OwnerReference: ref}) })
		if len(keep) < len(refs) {
			ops = append(ops, map[string]any{"op": "replace", "path": "/metadata/ownerReferences", "value": keep})
		}
	}

	remove := func(path, key string) {
		ops = append(ops, map[string]any{"op": "remove", "path": path + strings.ReplaceAll(key, "/", "~1")})
	}
	names := r.Owner.Names
	labels := names.Inherited(live.GetLabels())
	if value, ok := live.GetLabels()[names.ManagedLabel]; ok {
		labels[names.ManagedLabel] = value
	}

	for _, key := range slices.Sorted(maps.Keys(labels)) {
		remove("/metadata/labels/", key)
	}

	for _, key := range []string{names.RevisionAnnotation, names.AdoptedAnnotation} {
		if _, ok := live.GetAnnotations()[key]; ok {
			remove("/metadata/annotations/", key)
		}
	}

	if len(ops) == tests {
		return nil, nil
	}
	return json.Marshal(ops)
}

// releaseAnnotation returns the operations that leave the owners of others in the
// annotation.
func releaseAnnotation(names *objects.Names, live *unstructured.Unstructured, ours func(objects.Reference) bool) []map[string]any {
	annotations := live.GetAnnotations()
	if _, has := annotations[names.OwnersAnnotation]; !has {
		return nil
	}

	path := "/metadata/annotations/" + strings.ReplaceAll(names.OwnersAnnotation, "/", "~1")
	keep := slices.DeleteFunc(names.References(nil, annotations), ours)
	if value := objects.OwnersValue(keep); value != "" {
		return []map[string]any{{"op": "replace", "path": path, "value": value}}
	}
	return []map[string]any{{"op": "remove", "path": path}}
}
