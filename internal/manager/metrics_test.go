package manager

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/internal/testing/metricstest"
	"lockstep.run/lockstep/internal/version"
)

// A process says which version it is, and whether it leads.
func TestProcessMetrics(t *testing.T) {
	t.Parallel()
	elected := make(chan struct{})
	collectors := processMetrics(elected)
	build, leader := metricstest.Values(t, collectors[0]), metricstest.Values(t, collectors[1])
	close(elected)
	for _, tc := range []struct {
		got, want map[string]float64
	}{
		{build, map[string]float64{"lockstep_build_info " + runtime.Version() + " " + version.Get(): 1}},
		{leader, map[string]float64{"lockstep_leader": 0}},
		{metricstest.Values(t, collectors[1]), map[string]float64{"lockstep_leader": 1}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Error(diff)
		}
	}
}
