package objectdeployments

import (
	"fmt"
	"testing"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
)

// A Lease that expired can be renewed where nobody took it, and nothing tells of
// that: what was refused meanwhile is tried again.
func TestGoesOnAfterTheLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	got, err := (&reconciliation{}).giveUp(t.Context(), fmt.Errorf("patch: %w", leadership.ErrNotLeading))
	if err != nil || got.RequeueAfter != limits.LeaseRetry {
		t.Errorf("again after %s, error %v, want %s", got.RequeueAfter, err, limits.LeaseRetry)
	}
}
