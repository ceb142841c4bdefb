package statuswriter

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Write sends the status of obj, and replaces obj with the API server's answer. If it fails, obj
// stays unchanged.
func Write(ctx context.Context, c client.StatusClient, obj corev1alpha1.Conditioned) error {
	sent := bare(obj)
	bound(sent, obj.GetGeneration())
	if err := c.Status().Update(ctx, sent); err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(sent).Elem())
	return nil
}

// bare returns a copy of the object with only its name, UID, resource version and status.
func bare(obj corev1alpha1.Conditioned) client.Object {
	alone := obj.DeepCopyObject().(client.Object)
	fields := reflect.ValueOf(alone).Elem()
	fields.FieldByName("Spec").SetZero()
	fields.FieldByName("ObjectMeta").Set(reflect.ValueOf(metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}))
	return alone
}

// bound truncates a status that is too large. Callers do so before they compare it with
// the live one; this is a safety net.
func bound(obj client.Object, generation int64) {
	var status any
	switch o := obj.(type) {
	case corev1alpha1.GenericObjectSet:
		status = o.ObjectSetStatus()
	case corev1alpha1.GenericObjectDeployment:
		status = o.ObjectDeploymentStatus()
	case corev1alpha1.GenericPackage:
		status = o.PackageStatus()
	}

	if s := partsOf(status); s != nil && !s.fits() {
		Fit(status, generation, nil)
	}
}
