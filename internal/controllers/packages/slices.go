package packages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// slicesInFlight is how many slices of one package are written at a time.
const slicesInFlight = 8

// createSlices creates the slices that do not exist. They are owned by the
// deployment, whose controller deletes them when no revision uses them.
func (s *session) createSlices(ctx context.Context, made []objectslices.Slice, exist map[string]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(slicesInFlight)
	for _, slice := range made {
		if exist[slice.Name] {
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

// restoreEvery is the least time between two attempts to make slices again that
// were removed by force: their deployment takes a moment to see them.
const restoreEvery = 10 * time.Second

// lacksSlices reports whether the deployment misses slices that its template names.
func lacksSlices(dep corev1alpha1.GenericObjectDeployment) bool {
	if !current(dep) {
		return false
	}
	c := meta.FindStatusCondition(dep.ObjectDeploymentStatus().Conditions, corev1alpha1.ConditionProgressing)
	return c != nil && c.Reason == corev1alpha1.ReasonSlicesMissing
}

// restores reports whether the package is to be rendered for the slices that its
// deployment lacks.
func restores(v view) bool {
	return lacksSlices(v.dep) && !v.pkg.PackageSpec().Paused && v.now.Sub(v.restored) >= restoreEvery
}

func (s *session) createSlice(ctx context.Context, content objectslices.Slice) error {
	slice, err := s.newSlice(content)
	if err != nil {
		return err
	}
	err = s.Client.Create(ctx, slice)
	if err == nil {
		s.slices.PutCreated(string(s.dep.GetUID()), slice)
	}
	if apierrors.IsAlreadyExists(err) {
		return s.reuseSlice(ctx, slice)
	}
	return quiet(slice, err)
}

// quiet reduces an error about a Secret: the message may quote it.
func quiet(slice client.Object, err error) error {
	if _, secret := slice.(*corev1.Secret); secret {
		return apply.Reduced(err)
	}
	return err
}

// newSlice returns the ObjectSlice for the content, or the Secret where it is
// sensitive.
func (s *session) newSlice(content objectslices.Slice) (client.Object, error) {
	labels := map[string]string{corev1alpha1.SliceOwnerLabel: s.dep.GetName()}
	var object client.Object
	if content.Key == nil {
		slice := corev1alpha1.ScopeOf(s.pkg.GetNamespace()).NewObjectSlice()
		slice.SetNamespace(s.pkg.GetNamespace())
		slice.SetName(content.Name)
		*slice.SliceObjects() = content.Objects
		object = slice
	} else {
		secret, err := content.Secret()
		if err != nil {
			return nil, err
		}
		secret.SetNamespace(s.keys.namespaceOf(s.pkg))
		labels[corev1alpha1.SliceOwnerKindLabel] = s.sliceOwner().Kind
		object = secret
	}
	object.SetLabels(labels)
	object.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	object.SetOwnerReferences([]metav1.OwnerReference{s.sliceOwner()})
	return object, nil
}

func (s *session) sliceOwner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(),
		Kind:       corev1alpha1.ScopeOf(s.dep.GetNamespace()).Kind("ObjectDeployment"),
		Name:       s.dep.GetName(), UID: s.dep.GetUID(), Controller: ptr.To(true),
	}
}

// reuseSlice uses a slice that exists: after a crash, or because an older
// revision has the same content.
func (s *session) reuseSlice(ctx context.Context, want client.Object) error {
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
		// Also one that a user deleted: our finalizer keeps it while it is used.
		return nil
	case owner != nil && (owner.Name != s.dep.GetName() || owner.Kind != s.sliceOwner().Kind):
		return fmt.Errorf("it exists and belongs to %s %s", owner.Kind, owner.Name)
	}
	// Left by a deployment of this name that is gone.
	before := live.DeepCopyObject().(client.Object)
	live.SetOwnerReferences(want.GetOwnerReferences())
	live.SetFinalizers(want.GetFinalizers())
	live.SetLabels(want.GetLabels())
	return quiet(live, s.Client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// liveSlice reads the slice that has the name of the wanted one, and reports whether
// it has the same content.
func (s *session) liveSlice(ctx context.Context, want client.Object) (live client.Object, same bool, err error) {
	key := client.ObjectKeyFromObject(want)
	if slice, ok := want.(corev1alpha1.GenericObjectSlice); ok {
		found := corev1alpha1.ScopeOf(want.GetNamespace()).NewObjectSlice()
		if err := s.Reader.Get(ctx, key, found); err != nil {
			return nil, false, err
		}
		same, err := sameObjects(*found.SliceObjects(), *slice.SliceObjects())
		return found, same, err
	}
	found := &corev1.Secret{}
	if err := s.Reader.Get(ctx, key, found); err != nil {
		return nil, false, err
	}
	_, err = objectslices.Open(found) // its name stands for its content
	return found, err == nil, nil
}

// awaitSlice has the caller try again when a slice is gone that is being deleted.
// Only the engine removes its finalizer from one whose deployment is gone.
func (s *session) awaitSlice(ctx context.Context, live client.Object, mine bool) error {
	if rest := foreignFinalizers(live); !mine && len(rest) < len(live.GetFinalizers()) {
		before := live.DeepCopyObject().(client.Object)
		live.SetFinalizers(rest)
		err := s.Client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return quiet(live, err)
		}
	}
	return apierrors.NewConflict(corev1alpha1.Resource("objectslices"), live.GetName(), fmt.Errorf("it is being deleted"))
}

// sameObjects reports whether two lists mean the same.
func sameObjects(a, b []corev1alpha1.ObjectSetObject) (bool, error) {
	x, err := normal(&corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{Objects: a}}})
	if err != nil {
		return false, err
	}
	y, err := normal(&corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{Objects: b}}})
	if err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(x, y), nil
}
