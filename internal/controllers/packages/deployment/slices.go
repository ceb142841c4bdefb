package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"lockstep.run/lockstep/internal/kube/mutationcache"

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
	"lockstep.run/lockstep/internal/objectsets"
)

// Slices writes the slices of deployments.
type Slices struct {
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// Written keeps them for the controller of deployments.
	Written *mutationcache.Store
	// Namespace of the manager has the Secrets of ClusterPackages.
	Namespace string
}

// Create creates the slices that do not exist, owned by the deployment, whose controller deletes
// them.
func (s Slices) Create(ctx context.Context, dep corev1alpha1.GenericObjectDeployment, made []objectslices.Slice, exist sets.Set[string]) error {
	group, ctx := panics.NewGroup(ctx, limits.SlicesInFlight, "creating slices")
	for _, slice := range made {
		if exist.Has(slice.Name) {
			continue
		}
		group.Go(func() error {
			if err := s.create(ctx, dep, slice); err != nil {
				return fmt.Errorf("create slice %s: %w", slice.Name, err)
			}
			return nil
		})
	}

	return group.Wait()
}

// create creates a slice. Names depend on the content, so an existing slice can be used again.
func (s Slices) create(ctx context.Context, dep corev1alpha1.GenericObjectDeployment, made objectslices.Slice) error {
	slice, err := s.newSlice(dep, made)
	if err != nil {
		return err
	}
	err = s.Client.Create(ctx, slice)
	if apierrors.IsAlreadyExists(err) {
		return s.reuse(ctx, dep, slice)
	}
	if err == nil {
		s.Written.PutCreated(string(dep.GetUID()), slice)
	}
	return withoutSecrets(slice, err)
}

// withoutSecrets shortens an error about a Secret, because its message can quote the value.
func withoutSecrets(slice client.Object, err error) error {
	if _, secret := slice.(*corev1.Secret); secret {
		return apply.Reduced(err)
	}
	return err
}

// newSlice returns the ObjectSlice, or the Secret for objects with sensitive values.
func (s Slices) newSlice(dep corev1alpha1.GenericObjectDeployment, made objectslices.Slice) (client.Object, error) {
	owner := ControllerReference("ObjectDeployment", dep)
	labels := map[string]string{corev1alpha1.SliceOwnerLabel: dep.GetName()}
	var object client.Object
	if made.Key == nil {
		slice := corev1alpha1.ScopeOf(dep.GetNamespace()).NewObjectSlice()
		slice.SetNamespace(dep.GetNamespace())
		slice.SetName(made.Name)
		*slice.SliceObjects() = made.Objects
		object = slice
	} else {
		secret, err := made.Secret()
		if err != nil {
			return nil, err
		}
		secret.SetNamespace(cmp.Or(dep.GetNamespace(), s.Namespace))
		labels[corev1alpha1.SliceOwnerKindLabel] = owner.Kind
		object = secret
	}

	object.SetLabels(labels)
	object.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	object.SetOwnerReferences([]metav1.OwnerReference{owner})
	return object, nil
}

// reuse uses a slice that exists since a crash, or for an older revision.
func (s Slices) reuse(ctx context.Context, dep corev1alpha1.GenericObjectDeployment, want client.Object) error {
	live, same, err := s.live(ctx, want)
	if err != nil {
		return err
	}

	owner := metav1.GetControllerOf(live)
	mine := owner != nil && owner.UID == dep.GetUID()
	switch {
	case live.GetDeletionTimestamp() != nil && !(same && mine):
		return s.await(ctx, live, mine)
	case !same:
		return errors.New("it exists with other content: delete it if nothing uses it")
	case mine:
		return nil // also if a user deleted it: the finalizer keeps it while it is used
	case owner != nil && (owner.Name != dep.GetName() || owner.Kind != want.GetOwnerReferences()[0].Kind):
		return fmt.Errorf("it exists and belongs to %s %s", owner.Kind, owner.Name)
	}

	// It was left by a former deployment of this name.
	before := live.DeepCopyObject().(client.Object)
	live.SetOwnerReferences(want.GetOwnerReferences())
	live.SetFinalizers(want.GetFinalizers())
	live.SetLabels(want.GetLabels())
	return s.patch(ctx, before, live)
}

// patch bypasses the mutation caches: slices are read from the API server here.
func (s Slices) patch(ctx context.Context, before, slice client.Object) error {
	return withoutSecrets(slice, s.Client.Patch(ctx, slice, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// live reads the slice of that name, and reports whether it has the same content.
func (s Slices) live(ctx context.Context, want client.Object) (live client.Object, same bool, err error) {
	if slice, ok := want.(corev1alpha1.GenericObjectSlice); ok {
		found := corev1alpha1.ScopeOf(want.GetNamespace()).NewObjectSlice()
		if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(want), found); err != nil {
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
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(want), found); err != nil {
		return nil, false, err
	}

	_, err = objectslices.Open(found) // its name is a hash of its content
	return found, err == nil, nil
}

// objectsDigest returns the digest of a slice's objects, in the same form as a template's.
func objectsDigest(slice corev1alpha1.GenericObjectSlice) (string, error) {
	return templateDigest(&corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{Objects: *slice.SliceObjects()}}})
}

// await returns a conflict until a terminating slice is deleted, and finalizes one without a
// deployment.
func (s Slices) await(ctx context.Context, live client.Object, mine bool) error {
	if rest := objectsets.ForeignFinalizers(live); !mine && len(rest) < len(live.GetFinalizers()) {
		before := live.DeepCopyObject().(client.Object)
		live.SetFinalizers(rest)
		if err := s.patch(ctx, before, live); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return apierrors.NewConflict(corev1alpha1.Resource("objectslices"), live.GetName(), errors.New("it is being deleted"))
}
