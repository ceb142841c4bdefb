package measure

import (
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

func TestTransitionTimes(t *testing.T) {
	t.Parallel()
	write := func(user, name, subresource string, from, to int) sandbox.Entry {
		return sandbox.Entry{User: user, Verb: "patch", Code: 200, Object: sandbox.ObjectRef{Resource: "x", Name: name, Subresource: subresource}, Received: at(from), Done: at(to)}
	}
	manager := harness.ManagerUser()
	refused := write(manager, "shop-000-01-001", "", 12, 13)
	refused.Code = 409
	entries := []sandbox.Entry{
		write(manager, "shop-000-00-001", "", 1, 2),
		write(sandbox.AdminUser, "shop-000-00-000", "status", 10, 14),
		refused,
		write(manager, "shop-000-01-001", "", 19, 30),
		write(manager, "shop-000-01-000", "", 18, 31),
		write(manager, "shop-001-01-000", "", 11, 12),                 // of another package
		write(manager, "shop-000", "status", 11, 12),                  // not an object of the package
		write(sandbox.AdminUser, "shop-000-01-000", "status", 40, 41), // opens the last phase
	}

	seen := map[string]time.Time{"shop-000-00-000": at(13), "shop-000-01-000": at(50)}
	want := TransitionTimes{
		Count: 1, Manager: Quantiles{8, 8, 8, 8}, Watcher: Quantiles{3, 3, 3, 3}, Write: Quantiles{4, 4, 4, 4},
	}
	got := transitionTimes(entries, seen)
	require.Equal(t, want, got)
	if ratio := got.Ratio(); ratio < 2.66 || ratio > 2.67 {
		t.Errorf("the ratio is %v, want 8 by 3", ratio)
	}
	if got := transitionTimes(entries, nil); got.Count != 0 || got.Ratio() != 0 {
		t.Errorf("without a watcher: got %+v", got)
	}
}
