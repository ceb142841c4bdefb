package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// Converged means zero requests, and a restart with everything in place makes
// zero writes (invariant 5).
func TestRestIsSilentAndARestartWritesNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	manager := env.StartManager(t)
	audit, err := env.Audit()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		name := fmt.Sprintf("shop-%d", i)
		image := env.Push(t, name+":1", harness.Phased(name, 3, 5))
		env.Create(t, harness.Package("default", name, image))
	}
	for i := range 10 {
		env.WaitAvailable(t, "default", fmt.Sprintf("shop-%d", i))
	}
	byManager := []sandbox.Filter{sandbox.ByUser(harness.ManagerUser()), notWatchOrLease}
	if _, err := audit.Settled(t.Context(), 0, 3*time.Second, byManager...); err != nil {
		t.Fatal(err)
	}

	mark, err := audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rest := 15 * time.Second // polling at longer intervals shows in ./task test:deep
	if harness.Deep() {
		rest = 90 * time.Second
	}
	idle := time.NewTimer(rest)
	defer idle.Stop()
	select {
	case <-idle.C: // the measure is the time itself
	case <-t.Context().Done():
	}
	entries, err := audit.Since(t.Context(), mark, byManager...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("at rest the manager sent %s %s", e.Verb, e.RequestURI)
	}

	manager.Stop()
	mark, err = audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env.StartManager(t)
	reads, err := audit.Settled(t.Context(), mark, 5*time.Second, byManager...)
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	for _, e := range reads {
		if sandbox.Writes()(e) {
			writes++
			t.Errorf("after a restart the manager wrote %s %s", e.Verb, e.RequestURI)
		}
	}
	t.Logf("%s of rest: %d requests; a restart: %d requests, %d writes", rest, len(entries), len(reads), writes)
}

// notWatchOrLease leaves out what the budget leaves out: watches, and the
// manager's own Lease.
func notWatchOrLease(e sandbox.Entry) bool {
	return e.Verb != "watch" && e.Object.Resource != "leases"
}
