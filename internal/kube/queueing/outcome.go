package queueing

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/webhooks"
	"lockstep.run/lockstep/internal/limits"
)

// Outcome is the result of a reconcile for its queue.
type Outcome struct {
	// After is when the request is due again; zero for never.
	After time.Duration
}

// Requeue requeues the request after d at the latest.
func (o *Outcome) Requeue(d time.Duration) {
	d = max(d, time.Millisecond)
	if o.After == 0 || d < o.After {
		o.After = d
	}
}

// Wait requeues the request after the rest of a pause, and reports whether there is any.
func (o *Outcome) Wait(rest time.Duration) bool {
	if rest > 0 {
		o.Requeue(rest)
	}
	return rest > 0
}

// ErrEnd is returned by a step to skip the steps after it. It is not a failure.
var ErrEnd = errors.New("the reconcile has ended")

// Run takes a reconcile through its steps, up to the first that fails, and then through report with
// the error of that one. A panic is an error. A write that raced is not reported: the reconcile is
// repeated. After any other failure it is repeated with backoff, also if the write of the report
// raced.
func (o *Outcome) Run(
	ctx context.Context, report func(ctx context.Context, failed error) error, steps ...func(context.Context) error,
) (reconcile.Result, error) {
	failed := panics.Guard(ctx, "a reconcile", func() error {
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(failed, ErrEnd) {
		failed = nil
	}
	if Raced(failed) {
		return o.Result(ctx, failed)
	}
	reported := report(ctx, failed)
	if failed == nil {
		return o.Result(ctx, reported)
	}
	return reconcile.Result{}, errors.Join(failed, reported)
}

// Result returns the result of a reconcile that ended with err. A write that raced is not an error:
// the reconcile is repeated.
func (o *Outcome) Result(ctx context.Context, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: o.After}, nil
	case errors.Is(err, leadership.ErrNotLeading):
		// The next leader continues, or this process once it has renewed the Lease.
		return reconcile.Result{RequeueAfter: limits.LeaseRetry}, nil
	case Raced(err):
		log.FromContext(ctx).V(1).Info("the cache is behind", "error", err.Error())
		return reconcile.Result{RequeueAfter: limits.ConflictRetry}, nil
	}

	return reconcile.Result{}, err
}

// Raced reports whether a write failed by a conflict, or because this process does not lead: no
// status reports that. A field of another manager is not a race. Neither is a denial by a webhook,
// with any code, nor a concurrent write of the quota that counts the object: others write it again
// and again, so the reconcile is repeated after the backoff of errors.
func Raced(err error) bool {
	if errors.Is(err, leadership.ErrNotLeading) {
		return true
	}
	var answer apierrors.APIStatus
	ofQuota := errors.As(err, &answer) && answer.Status().Details != nil && answer.Status().Details.Kind == "resourcequotas"
	conflict := apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) && !ofQuota
	return (conflict || apierrors.IsAlreadyExists(err)) && !webhooks.Denied(err)
}

// Failures records since when each reconcile of an object has failed. The zero Failures means that
// the last one did not.
type Failures struct{ since time.Time }

// Note notes how a reconcile ended, and reports whether the status should have its error: at once
// if only a user can fix it, else once it has lasted for limits.ErrorsUnreported.
func (f *Failures) Note(now time.Time, failed error, blocked bool) bool {
	switch {
	case failed == nil:
		f.since = time.Time{}
		return false
	case f.since.IsZero():
		f.since = now
	}
	return blocked || now.Sub(f.since) >= limits.ErrorsUnreported
}
