package queueing

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
)

func TestOutcome(t *testing.T) {
	t.Parallel()
	failed := errors.New("no")
	for name, tc := range map[string]struct {
		err  error
		want time.Duration
		fail error
	}{
		"done":           {want: time.Second},
		"failed":         {err: failed, fail: failed},
		"conflict":       {err: fmt.Errorf("write: %w", apierrors.NewConflict(schema.GroupResource{}, "a", nil)), want: limits.ConflictRetry},
		"exists already": {err: apierrors.NewAlreadyExists(schema.GroupResource{}, "a"), want: limits.ConflictRetry},
		"not leading":    {err: fmt.Errorf("write: %w", leadership.ErrNotLeading), want: limits.LeaseRetry},
	} {
		var o Outcome
		for _, d := range []time.Duration{time.Minute, time.Second, time.Hour} {
			o.Requeue(d)
		}
		if got, err := o.Result(t.Context(), tc.err); got.RequeueAfter != tc.want || !errors.Is(err, tc.fail) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	var o Outcome
	if got, _ := o.Result(t.Context(), nil); got.RequeueAfter != 0 {
		t.Errorf("nothing is due, and it is requeued after %v", got.RequeueAfter)
	}
	if o.Requeue(-time.Second); o.After <= 0 {
		t.Errorf("what is overdue is requeued after %v", o.After)
	}
}
