package statuswriter

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
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

// Failure is the error of a step of a reconcile, on its way to the status of an object.
type Failure[N int32 | int64] struct {
	Object corev1alpha1.Conditioned
	// Observed is the field status.observedGeneration of the object.
	Observed *N
	// Failures are the object's, and Err is the error at the time At. Blocked means that a user has
	// to fix it.
	Failures *queueing.Failures
	At       time.Time
	Err      error
	Blocked  bool
}

// Report puts the error on the status, if it should have it by now, and keeps the response. The other
// conditions stay as they are.
func (f Failure[N]) Report(ctx context.Context, c client.StatusClient, fresh *mutationcache.Store) error {
	if !f.Failures.Note(f.At, f.Err, f.Blocked) {
		return nil
	}

	generation := f.Object.GetGeneration()
	changed := conditions.Kstatus(f.Object.StatusConditions(), generation, conditions.State{
		Stalled: f.Blocked, Reason: corev1alpha1.ReasonApplyError, Message: conditions.Message(f.Err.Error()),
	})
	if !changed && *f.Observed == N(generation) {
		return nil
	}

	*f.Observed = N(generation)
	err := Write(ctx, c, f.Object)
	switch {
	case apierrors.IsNotFound(err):
		return nil // it was deleted
	case err != nil:
		return fmt.Errorf("write the status: %w", err)
	}

	fresh.Put(f.Object)
	return nil
}

// Event is an event about an object, such as the transition of a status that was written.
type Event struct{ Kind, Reason, Action, Note string }

// Record records events about an object. A note is cut to limits.EventNote.
func Record(recorder events.EventRecorder, about runtime.Object, all ...Event) {
	for _, e := range all {
		recorder.Eventf(about, nil, e.Kind, e.Reason, e.Action, "%s", conditions.Cut(conditions.Message(e.Note), limits.EventNote))
	}
}
