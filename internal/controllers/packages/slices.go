package packages

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// createSlices creates the slices that do not exist, owned by the deployment, whose controller deletes them.
func (s *reconciliation) createSlices(ctx context.Context, made []objectslices.Slice, exist sets.Set[string]) error {
	group, ctx := panics.NewGroup(ctx, limits.SlicesInFlight, "creating slices")
	for _, slice := range made {
		if exist.Has(slice.Name) {
			continue
		}
		group.Go(func() error {
			if err := s.createSlice(ctx, slice); err != nil {
				return fmt.Errorf("create slice %s: %w", slice.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *reconciliation) createSlice(ctx context.Context, made objectslices.Slice) error {
	slice, err := s.newSlice(made)
	if err != nil {
		return err
	}
	err = s.Client.Create(ctx, slice)
	if apierrors.IsAlreadyExists(err) {
		return s.reuseSlice(ctx, slice)
	}
	if err == nil {
		s.Slices.PutCreated(string(s.dep.GetUID()), slice)
	}
	return withoutSecrets(slice, err)
}

// withoutSecrets reduces an error about a Secret: the message may quote it.
func withoutSecrets(slice client.Object, err error) error {
	if _, secret := slice.(*corev1.Secret); secret {
		return apply.Reduced(err)
	}
	return err
}

func (s *reconciliation) newSlice(made objectslices.Slice) (client.Object, error) {
	owner := controllerReference("ObjectDeployment", s.dep)
	labels := map[string]string{corev1alpha1.SliceOwnerLabel: s.dep.GetName()}
	var object client.Object
	if made.Key == nil {
		slice := corev1alpha1.ScopeOf(s.pkg.GetNamespace()).NewObjectSlice()
		slice.SetNamespace(s.pkg.GetNamespace())
		slice.SetName(made.Name)
		*slice.SliceObjects() = made.Objects
		object = slice
	} else {
		secret, err := made.Secret()
		if err != nil {
			return nil, err
		}
		secret.SetNamespace(s.namespaceOf(s.pkg))
		labels[corev1alpha1.SliceOwnerKindLabel] = owner.Kind
		object = secret
	}
	object.SetLabels(labels)
	object.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	object.SetOwnerReferences([]metav1.OwnerReference{owner})
	return object, nil
}

// reuseSlice uses a slice that exists since a crash, or for an older revision.
func (s *reconciliation) reuseSlice(ctx context.Context, want client.Object) error {
	live, same, err := s.liveSlice(ctx, want)
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(live)
	mine := owner != nil && owner.UID == s.dep.GetUID()
	switch {
	case live.GetDeletionTimestamp() != nil && !(same && mine):
		return s.awaitSlice(ctx, live, mine)
	case !same:
		return errors.New("it exists with other content: delete it if nothing uses it")
	case mine:
		return nil // also where a user deleted it: the finalizer keeps it while it is used
	case owner != nil && (owner.Name != s.dep.GetName() || owner.Kind != want.GetOwnerReferences()[0].Kind):
		return fmt.Errorf("it exists and belongs to %s %s", owner.Kind, owner.Name)
	}
	// It was left by a former deployment of this name.
	before := copyOf(live)
	live.SetOwnerReferences(want.GetOwnerReferences())
	live.SetFinalizers(want.GetFinalizers())
	live.SetLabels(want.GetLabels())
	return s.patchSlice(ctx, before, live)
}

// patchSlice bypasses the mutation caches: slices are read from the API server here.
func (s *reconciliation) patchSlice(ctx context.Context, before, slice client.Object) error {
	return withoutSecrets(slice, s.Client.Patch(ctx, slice, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// liveSlice reads the slice of that name, and reports whether it has the same content.
func (s *reconciliation) liveSlice(ctx context.Context, want client.Object) (live client.Object, same bool, err error) {
	if slice, ok := want.(corev1alpha1.GenericObjectSlice); ok {
		found := corev1alpha1.ScopeOf(want.GetNamespace()).NewObjectSlice()
		if err := s.Reader.Get(ctx, keyOf(want), found); err != nil {
			return nil, false, err
		}
		last, err := objectsDigest(found)
		if err != nil {
			return nil, false, err
		}
		digest, err := objectsDigest(slice)
		return found, last == digest, err
	}
	found := &corev1.Secret{}
	if err := s.Reader.Get(ctx, keyOf(want), found); err != nil {
		return nil, false, err
	}
	_, err = objectslices.Open(found) // its name stands for its content
	return found, err == nil, nil
}

func objectsDigest(slice corev1alpha1.GenericObjectSlice) (string, error) {
	return templateDigest(&corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{Objects: *slice.SliceObjects()}}})
}

// awaitSlice returns a conflict until a terminating slice is deleted, and finalizes one without a deployment.
func (s *reconciliation) awaitSlice(ctx context.Context, live client.Object, mine bool) error {
	if rest := foreignFinalizers(live); !mine && len(rest) < len(live.GetFinalizers()) {
		before := copyOf(live)
		live.SetFinalizers(rest)
		if err := s.patchSlice(ctx, before, live); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return apierrors.NewConflict(corev1alpha1.Resource("objectslices"), live.GetName(), errors.New("it is being deleted"))
}
