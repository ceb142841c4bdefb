package packages

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

func TestWhenToTryAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		err    error
		after  time.Duration
		failed bool
	}{
		"done":        {reason: "an event tells of what comes next"},
		"not leading": {reason: "a Lease that expired can be renewed where nobody took it, and nothing tells of that", err: fmt.Errorf("patch: %w", leadership.ErrNotLeading), after: limits.LeaseRetry},
		"conflict":    {reason: "the event of the newer object comes", err: apierrors.NewConflict(schema.GroupResource{}, "shop", errors.New("modified")), after: limits.ConflictRetry},
		"other":       {reason: "the queue backs off", err: errors.New("refused"), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := (&reconciliation{}).result(t.Context(), tc.err)
			if got.RequeueAfter != tc.after || (err != nil) != tc.failed {
				t.Errorf("again after %s, error %v, want %s, an error: %v: %s", got.RequeueAfter, err, tc.after, tc.failed, tc.reason)
			}
		})
	}
}
