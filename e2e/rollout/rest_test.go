package rollout_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Converged means zero requests, even while the metrics are read ten times a second. A restart
// after everything converged makes zero writes (invariant 5) for objects of any kind, although the
// API server drops, defaults and converts fields, and controllers write them.
func TestRestIsSilentAndARestartWritesNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t, sandbox.WithoutNodes())
	metrics := harness.Address(t)
	manager := env.StartManager(t, "--metrics-bind-address", metrics)
	audit, err := env.Audit()
	require.NoError(t, err)
	for i := range 10 {
		name := fmt.Sprintf("shop-%d", i)
		image := env.Push(t, name+":1", harness.Phased(name, 3, 5))
		env.Create(t, harness.Package("default", name, image))
	}
	for i := range 10 {
		env.WaitAvailable(t, "default", fmt.Sprintf("shop-%d", i))
	}
	kinds, err := os.ReadFile("testdata/kinds.yaml")
	require.NoError(t, err)
	image := env.Push(t, "kinds:1", harness.Files{"manifest.yaml": harness.Manifest("kinds", []string{"all"}, ""), "kinds.yaml": string(kinds)})
	env.Create(t, harness.Package("default", "kinds", image))
	env.WaitAvailable(t, "default", "kinds")
	byManager := []sandbox.Filter{sandbox.ByUser(harness.ManagerUser()), notWatchOrLease}
	if _, err := audit.Settled(t.Context(), 0, 3*time.Second, byManager...); err != nil {
		t.Fatal(err)
	}

	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	rest := 15 * time.Second // polling at longer intervals shows in ./task test:deep
	if harness.Deep() {
		rest = 10 * time.Minute
	}
	scrapes := scrapeFor(t, metrics, rest)
	entries, err := audit.Since(t.Context(), mark, byManager...)
	require.NoError(t, err)
	for _, e := range entries {
		t.Errorf("at rest the manager sent %s %s", e.Verb, e.RequestURI)
	}

	manager.Stop()
	mark, err = audit.Mark(t.Context())
	require.NoError(t, err)
	env.StartManager(t)
	reads, err := audit.Settled(t.Context(), mark, 5*time.Second, byManager...)
	require.NoError(t, err)
	writes := 0
	for _, e := range reads {
		if sandbox.Writes()(e) && e.Object.Resource != "selfsubjectaccessreviews" { // of a slow start, about the manager's own rights
			writes++
			t.Errorf("after a restart the manager wrote %s %s", e.Verb, e.RequestURI)
		}
	}
	t.Logf("%s of rest with %d scrapes: %d requests; a restart: %d requests, %d writes", rest, scrapes, len(entries), len(reads), writes)
}

// scrapeFor reads the metrics ten times a second for some time, and returns the number of reads.
// There can be fewer on a busy machine.
func scrapeFor(t *testing.T, address string, rest time.Duration) (scrapes int) {
	t.Helper()
	ticks, idle := time.NewTicker(100*time.Millisecond), time.NewTimer(rest)
	defer ticks.Stop()
	defer idle.Stop()
	for {
		select {
		case <-ticks.C:
			if text := harness.Metrics(t, address); !strings.Contains(text, `lockstep_packages{summary="Available"} 11`) {
				t.Fatalf("the metrics do not have the packages:\n%s", text)
			}
			scrapes++
		case <-idle.C:
			return scrapes
		case <-t.Context().Done():
			return scrapes
		}
	}
}

// notWatchOrLease excludes watches and requests for the manager's Lease, as the budget does.
func notWatchOrLease(e sandbox.Entry) bool {
	return e.Verb != "watch" && e.Object.Resource != "leases"
}
