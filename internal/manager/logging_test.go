package manager

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/klog/v2"

	"lockstep.run/lockstep/test/require"
)

// TestBodiesOfRequestsAreNeverLogged: client-go logs them from level 8 on, and they can be Secrets
// (invariant 8). The most verbose level is 1.
func TestBodiesOfRequestsAreNeverLogged(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		logger, err := newLogger(name)
		require.NoError(t, err)
		for verbosity := 2; verbosity <= 10; verbosity++ {
			if logger.V(verbosity).Enabled() || klog.Background().V(verbosity).Enabled() || klog.V(klog.Level(verbosity)).Enabled() {
				t.Errorf("at the level %s verbosity %d is logged", name, verbosity)
			}
		}
	}
	if _, err := newLogger("8"); err == nil {
		t.Error("the level 8 can be set")
	}
}
