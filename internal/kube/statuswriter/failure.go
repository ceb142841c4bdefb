package statuswriter

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
)

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
