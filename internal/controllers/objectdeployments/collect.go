package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
)

// collectSlices deletes slices that neither the template nor a set uses. Secrets
// are for sets that own objects: history needs no values.
func (s *reconciliation) collectSlices(ctx context.Context) error {
	s.slicesDue = time.Time{}
	if err := s.listSets(ctx); err != nil {
		return err
	}
	if err := s.dropSlices(ctx, s.sliceReferences()); err != nil {
		return err
	}
	s.collected, s.collectionDue = true, false
	return nil
}

// collectable reports whether slices might be unused: revisions were removed, or a write was tried
// that removes them; some slices were too young; a revision was archived whose Secrets history does
// not need; or an earlier process ended before it collected. It stays so until a collection has
// succeeded.
func (s *reconciliation) collectable() bool {
	due := !s.slicesDue.IsZero() && !s.Now().Before(s.slicesDue)
	s.collectionDue = s.collectionDue || due || s.sealed() && !s.collected
	return s.collectionDue
}

// sliceReferences returns the names of the slices that the template and the sets name, with whether
// they are used: history has names of Secrets that are not.
func (s *reconciliation) sliceReferences() map[string]bool {
	names := map[string]bool{}
	for _, set := range s.sets {
		for _, name := range objectsets.SecretsOf(set) {
			names[name] = names[name] || objectsets.Owns(set)
		}
		for _, name := range objectsets.SlicesOf(set) {
			names[name] = true
		}
	}

	for _, phase := range s.deployment.ObjectDeploymentSpec().Template.Spec.Phases {
		for _, name := range append(slices.Clone(phase.Slices), phase.SecretSlices...) {
			names[name] = true
		}
	}

	return names
}

// sliceGrace is the time until an unnamed slice is deleted, because a slice is written before the
// template that names it.
const sliceGrace = time.Minute

// dropSlices deletes the slices of the deployment that are not used.
func (s *reconciliation) dropSlices(ctx context.Context, names map[string]bool) error {
	obsolete, err := s.obsoleteSlices(ctx, names)
	if err != nil {
		return err
	}
	return eachSlice(ctx, obsolete, s.drop)
}

// obsoleteSlices returns the slices of the deployment that are not used; without names all of them.
// A deployment that never had slices does not cost a request.
func (s *reconciliation) obsoleteSlices(ctx context.Context, names map[string]bool) ([]*metav1.PartialObjectMetadata, error) {
	obsolete := func(slice *metav1.PartialObjectMetadata) bool {
		used, named := names[slice.Name]
		owner := metav1.GetControllerOf(slice)
		if used || owner != nil && owner.UID != s.deployment.GetUID() {
			return false
		}
		if names != nil && !named && s.Now().Sub(slice.CreationTimestamp.Time) < sliceGrace {
			s.slicesDue = s.Now().Add(sliceGrace)
			return false
		}
		return true
	}

	sliced := s.deployment.GetAnnotations()[corev1alpha1.SlicedAnnotation] == "true" || slices.ContainsFunc(s.sets, objectsets.Sliced)
	return s.listSlices(ctx, sliced, s.sealed(), obsolete)
}

// listSlices returns the ObjectSlices, and the Secrets with objects, of the deployment's name that
// obsolete selects. It lists metadata only, since the content is large or sensitive.
func (s *reconciliation) listSlices(
	ctx context.Context, sliced, sealed bool, obsolete func(*metav1.PartialObjectMetadata) bool,
) (found []*metav1.PartialObjectMetadata, err error) {
	for _, of := range []struct {
		exist     bool
		kind      schema.GroupVersionKind
		namespace string
		labels    client.MatchingLabels
	}{
		{sliced, corev1alpha1.GroupVersion.WithKind(s.scope.Kind("ObjectSlice")), s.key.Namespace, client.MatchingLabels{}},
		{sealed, corev1.SchemeGroupVersion.WithKind("Secret"), s.secretNamespace(), client.MatchingLabels{corev1alpha1.SliceOwnerKindLabel: s.key.Kind}},
	} {
		if !of.exist {
			continue
		}

		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(of.kind.GroupVersion().WithKind(of.kind.Kind + "List"))
		err := s.Reader.List(ctx, list, client.InNamespace(of.namespace), client.MatchingLabels{corev1alpha1.SliceOwnerLabel: s.key.Name}, of.labels)
		if err != nil {
			return nil, fmt.Errorf("cannot list slices: %w", err)
		}

		for i := range list.Items {
			if slice := &list.Items[i]; obsolete(slice) {
				slice.SetGroupVersionKind(of.kind) // items of a list may come without
				found = append(found, slice)
			}
		}
	}

	return found, nil
}

// eachSlice writes slices concurrently.
func eachSlice(ctx context.Context, all []*metav1.PartialObjectMetadata, write func(context.Context, *metav1.PartialObjectMetadata) error) error {
	group, ctx := panics.NewGroup(ctx, limits.SlicesInFlight, "collecting slices")
	for _, slice := range all {
		group.Go(func() error { return write(ctx, slice) })
	}
	return group.Wait()
}

// dropSets deletes sets that own no objects, and slices of a deployment that has no others. Once a
// set is deleted, the garbage collector takes the reference to it off its slices. So their
// finalizers are removed before that, and they are deleted in any state.
func (s *reconciliation) dropSets(ctx context.Context, sets []corev1alpha1.GenericObjectSet, obsolete []*metav1.PartialObjectMetadata) error {
	if err := eachSlice(ctx, obsolete, s.stripFinalizers); err != nil {
		return err
	}

	for _, set := range sets {
		if set.GetDeletionTimestamp() != nil && finalized(set) {
			continue
		}
		if err := s.dropSet(ctx, set); err != nil {
			return err
		}
	}

	for _, slice := range obsolete {
		slice.ResourceVersion = ""
	}
	return eachSlice(ctx, obsolete, s.drop)
}
