package manager

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/test/metricstest"
	"lockstep.run/lockstep/test/require"
)

// A process reports its version, and whether it leads.
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
		require.Equal(t, tc.want, tc.got)
	}
	// If an agent counted as a leader, no alert would report a missing manager.
	for _, collector := range processMetrics(nil) {
		for series := range metricstest.Values(t, collector) {
			if strings.HasPrefix(series, "lockstep_leader") {
				t.Errorf("an agent has %s", series)
			}
		}
	}
}

// Kinds whose names are the same within the bound of a label leave the other metrics as they are:
// if a series is duplicate, none can be read.
func TestWatchedKindsWithLongNames(t *testing.T) {
	t.Parallel()
	group := strings.Repeat("a", 250) + ".example.com"
	kinds := map[schema.GroupVersionKind]int{
		{Group: group, Version: "v1", Kind: "A"}: 1, {Group: group, Version: "v1", Kind: "B"}: 2, {Version: "v1", Kind: "ConfigMap"}: 3,
	}
	got := metricstest.Values(t, watched{kinds: func() map[schema.GroupVersionKind]int { return kinds }})
	require.Equal(t, 3, len(got), "series")
}

// slow is a client that does not read.
type slow struct {
	http.ResponseWriter
	once          sync.Once
	writes, leave chan struct{}
}

func (s *slow) Write([]byte) (int, error) {
	s.once.Do(func() {
		s.writes <- struct{}{}
		<-s.leave
	})
	return 0, errors.New("the client has disconnected")
}

// The third scrape at a time is refused.
func TestScrapesAreBounded(t *testing.T) {
	t.Parallel()
	handler, err := metricsHandler(false, nil, logr.Discard())
	require.NoError(t, err)
	scrape := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	writes, leave := make(chan struct{}), make(chan struct{})
	var scrapes sync.WaitGroup
	for range metricScrapes {
		scrapes.Go(func() {
			handler.ServeHTTP(&slow{ResponseWriter: httptest.NewRecorder(), writes: writes, leave: leave}, scrape)
		})
		<-writes
	}
	third := httptest.NewRecorder()
	handler.ServeHTTP(third, scrape)
	if third.Code != http.StatusServiceUnavailable {
		t.Errorf("the third scrape: %d", third.Code)
	}
	close(leave)
	scrapes.Wait()
}

// A start ends once the process is quiet, and the settings of the collector apply again.
func TestStartEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), startMost/2)
	defer cancel()
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	most := debug.SetMemoryLimit(-1)

	start(ctx, most)
	if ctx.Err() != nil {
		t.Error("the start did not end")
	}
	if percent, limit := debug.SetGCPercent(77), debug.SetMemoryLimit(-1); percent != 77 || limit != most {
		t.Errorf("GOGC is %d, and the memory limit %d instead of %d", percent, limit, most)
	}
}

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
