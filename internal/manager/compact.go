package manager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/repositories"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
)

// ownKinds counts the memory of the caches for objects of our own kinds, which users can make
// large.
type ownKinds struct{ account *quota.Memory }

// compactSafely is compact, but that an object over which it panics stays as it is.
func (k *ownKinds) compactSafely(obj any) (compacted any, _ error) {
	compacted = obj
	_ = panics.Guard(context.Background(), "reading an object into the caches", func() (err error) {
		compacted, err = k.compact(obj)
		return err
	})
	return compacted, nil
}

// compact is the transform of the caches: it drops fields that no decision reads. Writes are
// patches of changed fields, so the server does not lose anything.
func (k *ownKinds) compact(obj any) (any, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}

	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}

	if bulk := mutationcache.Bulk(o); bulk > limits.OwnObjectBytes && k.account.Hold(memoryKey(o), bulk) != nil {
		mutationcache.Reduce(o)
	}
	if available, ok := obj.(corev1alpha1.GenericAvailablePackage); ok {
		repositories.Compact(available)
	}
	if set, ok := obj.(corev1alpha1.GenericObjectSet); ok {
		objectsets.Compact(set)
	}

	return obj, nil
}

// deleted releases the memory that is held for an object.
func (k *ownKinds) deleted(obj any) {
	if tombstone, is := obj.(toolscache.DeletedFinalStateUnknown); is {
		obj = tombstone.Obj
	}
	if o, is := obj.(metav1.Object); is {
		k.account.Count(memoryKey(o), 0)
	}
}

// memoryKey contains the UID, because an object of the same name can exist before the event of a
// deletion is handled.
func memoryKey(o metav1.Object) quota.Key {
	return quota.Key{Namespace: o.GetNamespace(), Name: o.GetName(), ID: string(o.GetUID())}
}
