package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/objectsets"
)

// readSlices reads the ObjectSlices of a set and returns the missing ones.
func (s *reconciliation) readSlices(ctx context.Context, set corev1alpha1.GenericObjectSet) (missing []string, err error) {
	return readStored(s.stored.Slices, objectsets.SlicesOf(set), func(name string) (string, error) {
		key := types.NamespacedName{Namespace: set.GetNamespace(), Name: name}
		slice, listed := s.prefetched[key]
		if !listed {
			slice = s.scope.NewObjectSlice()
			if err := s.Reader.Get(ctx, key, slice); err != nil {
				return name, fmt.Errorf("cannot read slice %s of %s: %w", name, set.GetName(), err)
			}
		}
		s.store(slice)
		return "", nil
	})
}

// readSecrets reads the Secrets of a set and returns the missing ones. A user with the right to
// write Secrets does not necessarily have the right to write packages, so a Secret whose content
// does not match its name is treated as missing.
func (s *reconciliation) readSecrets(ctx context.Context, set corev1alpha1.GenericObjectSet) (missing []string, err error) {
	return readStored(s.stored.Secrets, objectsets.SecretsOf(set), func(name string) (string, error) {
		secret := &corev1.Secret{}
		if err := s.Reader.Get(ctx, types.NamespacedName{Namespace: s.secretNamespace(), Name: name}, secret); err != nil {
			return name, fmt.Errorf("cannot read Secret %s of %s: %w", name, set.GetName(), err)
		}
		objects, err := objectslices.Open(secret)
		if err != nil {
			return fmt.Sprintf("%s (%v)", name, err), nil
		}
		s.stored.Secrets[name] = objects
		return "", nil
	})
}

// readStored reads the objects of these names that are not known yet, and returns the missing ones;
// read returns the proper name of a read object. Stored objects never change, and revisions share
// them. Invalid names are treated as missing.
func readStored(
	known map[string][]corev1alpha1.ObjectSetObject, names []string, read func(name string) (missing string, err error),
) (missing []string, err error) {
	for _, name := range names {
		if len(missing) >= limits.SlicesMissing {
			break // each of the others would cost a request
		}
		if _, has := known[name]; has {
			continue
		}
		lacks := name
		if objectsets.Stores(name) {
			if lacks, err = read(name); err != nil && !apply.IsAbsent(err) {
				return nil, err
			}
		}
		if lacks != "" {
			missing = append(missing, lacks)
		}
	}
	return missing, nil
}

// takeWritten takes over the slices that were written for the owner since.
func (s *reconciliation) takeWritten() {
	owner := string(s.top().GetUID())
	for _, obj := range s.written.Created(owner) {
		switch slice := obj.(type) {
		case corev1alpha1.GenericObjectSlice:
			s.store(slice)
		case *corev1.Secret:
			if objects, err := objectslices.Open(slice); err == nil {
				s.stored.Secrets[obj.GetName()] = objects
			}
		}
	}
	s.written.Forget(owner)
}

// store caches the content of a slice, and its owners. Slices of lone sets get no owner reference:
// they are the user's, can be shared with other sets, and would be garbage-collected with the first
// of them.
func (s *reconciliation) store(slice corev1alpha1.GenericObjectSlice) {
	s.stored.Slices[slice.GetName()] = *slice.SliceObjects()
	if s.deployment == nil {
		return
	}
	s.owned[slice.GetName()] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: slice.GetNamespace(), Name: slice.GetName(), UID: slice.GetUID(), ResourceVersion: slice.GetResourceVersion(),
		OwnerReferences: slice.GetOwnerReferences(),
	}}
}

// isSet reports whether an owner reference is to a set that stays.
func (s *reconciliation) isSet(ref metav1.OwnerReference) bool {
	return slices.ContainsFunc(s.sets, func(set corev1alpha1.GenericObjectSet) bool {
		return set.GetUID() == ref.UID && set.GetDeletionTimestamp() == nil
	})
}

// sealed reports whether the deployment has, or had, objects in Secrets.
func (s *reconciliation) sealed() bool {
	return s.deployment.GetAnnotations()[corev1alpha1.SecretSlicedAnnotation] == "true" || slices.ContainsFunc(s.sets, objectsets.Sealed)
}

// forgetSlices drops the content of slices that no loaded revision uses.
func (s *reconciliation) forgetSlices() {
	used := map[string]bool{}
	for _, set := range s.sets {
		if s.revisionOf(set) != nil {
			for _, name := range append(objectsets.SlicesOf(set), objectsets.SecretsOf(set)...) {
				used[name] = true
			}
		}
	}
	unused := func(name string, _ []corev1alpha1.ObjectSetObject) bool { return !used[name] }
	maps.DeleteFunc(s.stored.Slices, unused)
	maps.DeleteFunc(s.stored.Secrets, unused)
	maps.DeleteFunc(s.owned, func(name string, _ *metav1.PartialObjectMetadata) bool { return !used[name] })
}

// referenceSlices makes sets owners of the slices that were written for them, for tools that follow
// owner references. A slice gets one such reference, even if later revisions share it, and another
// one when its set has been deleted, because the garbage collector then removes the reference. Each
// pass patches only a few, because a gate can be due after it.
func (s *reconciliation) referenceSlices(ctx context.Context) error {
	due := s.dueReferences()
	if len(due) > 0 {
		s.Requeue(0)
	}

	group, ctx := panics.NewGroup(ctx, limits.SlicesInFlight, "referring to slices")
	var mu sync.Mutex
	for _, r := range due {
		group.Go(func() error {
			now, err := s.referenceSlice(ctx, r.set, r.slice)
			mu.Lock()
			defer mu.Unlock()
			if s.owned[r.slice.Name] = now; now == nil {
				delete(s.owned, r.slice.Name)
			}
			return err
		})
	}

	return group.Wait()
}

// reference is a set that becomes an owner of a slice.
type reference struct {
	set   corev1alpha1.GenericObjectSet
	slice *metav1.PartialObjectMetadata
}

// referencesAtOnce bounds how many references one pass adds to slices.
const referencesAtOnce = 64

// dueReferences returns the references of one pass, each slice once. The newest set gets it because
// it stays the longest.
func (s *reconciliation) dueReferences() []reference {
	var due []reference
	begun := map[string]bool{}
	for _, set := range slices.Backward(s.sets) {
		if !objectsets.Owns(set) || set.GetDeletionTimestamp() != nil {
			continue
		}
		for _, name := range objectsets.SlicesOf(set) {
			slice := s.owned[name]
			if slice == nil || begun[name] || slices.ContainsFunc(slice.OwnerReferences, s.isSet) {
				continue
			}
			if len(due) == referencesAtOnce {
				return due
			}
			begun[name] = true
			due = append(due, reference{set, slice})
		}
	}

	return due
}

// referenceSlice returns the slice with its owners, nil if it does not exist any more.
func (s *reconciliation) referenceSlice(
	ctx context.Context, set corev1alpha1.GenericObjectSet, slice *metav1.PartialObjectMetadata,
) (*metav1.PartialObjectMetadata, error) {
	slice.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(s.scope.Kind("ObjectSlice")))
	after := slice.DeepCopy()
	after.OwnerReferences = append(after.OwnerReferences, metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: s.scope.Kind("ObjectSet"), Name: set.GetName(), UID: set.GetUID(),
	})
	err := s.Client.Patch(ctx, after, client.MergeFromWithOptions(slice, client.MergeFromWithOptimisticLock{}))
	if err != nil && apply.Classify(err) == apply.Conflict {
		// The garbage collector was faster, or the response to an earlier attempt was lost.
		after, err = slice, s.Reader.Get(ctx, client.ObjectKeyFromObject(slice), slice)
	}

	switch {
	case err == nil:
		return after, nil
	case apply.IsAbsent(err):
		return nil, nil
	}

	return slice, fmt.Errorf("cannot make %s an owner of slice %s: %w", set.GetName(), slice.Name, err)
}
