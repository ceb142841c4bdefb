package queueing

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A standby has no caches, and reports nothing.
func TestMetricsBeginWithTheController(t *testing.T) {
	t.Parallel()
	m := &whileStarted{Collector: prometheus.NewGauge(prometheus.GaugeOpts{Name: "objects"})}
	for _, started := range []bool{false, true} {
		m.started.Store(started)
		out := make(chan prometheus.Metric, 1)
		if m.Collect(out); (len(out) > 0) != started {
			t.Errorf("started: %t: %d metrics", started, len(out))
		}
	}
}
