package manager

import (
	"cmp"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/metrics"
	"lockstep.run/lockstep/internal/kube/serving"
	"lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
)

const (
	metricsReviews = 10 // token reviews a second for requests of metrics: clients without rights cause this load on the API server
	// at a time, further ones are answered with 503: a scrape of 5,000 packages allocates 30 MiB.
	// Prometheus has one in progress; a second one can come from another replica
	metricScrapes = 2
)

// metricsHandler returns the handler of /metrics. If secure, it answers only clients whose token
// the API server knows and that are allowed to get /metrics, because metrics name every package of
// the cluster.
func metricsHandler(secure bool, config *rest.Config, log logr.Logger) (http.Handler, error) {
	handler := serving.Hold(promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: metricScrapes}))
	if secure {
		// Not the guarded client: a manager without the Lease has metrics, too. Every client
		// that reaches the port causes reviews, so that these have a rate of their own.
		reviews := rest.CopyConfig(config)
		reviews.QPS, reviews.Burst = metricsReviews, metricsReviews
		httpClient, err := rest.HTTPClientFor(reviews)
		if err != nil {
			return nil, err
		}
		filter, err := filters.WithAuthenticationAndAuthorization(reviews, httpClient)
		if err != nil {
			return nil, err
		}
		if handler, err = filter(log.WithName("metrics"), handler); err != nil {
			return nil, err
		}
	}

	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	return mux, nil
}

// processMetrics returns the metrics of the process: which version runs, and whether it leads. An
// agent has no Lease, so it must not count as a leader for alerts about a missing one: elected is
// nil for it.
func processMetrics(elected <-chan struct{}) []prometheus.Collector {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: metrics.BuildInfo.Name, Help: metrics.BuildInfo.Help,
		ConstLabels: prometheus.Labels{"version": version.Get(), "go_version": runtime.Version()},
	})

	build.Set(1)
	leader := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metrics.Leader.Name, Help: metrics.Leader.Help}, func() float64 {
		select {
		case <-elected:
			return 1
		default:
			return 0
		}
	})

	if elected == nil {
		return append([]prometheus.Collector{build}, metrics.Instruments()...)
	}
	return append([]prometheus.Collector{build, leader}, metrics.Instruments()...)
}

// count counts an event of an engine.
func count(e engine.Event) {
	switch e.Kind {
	case engine.Write:
		metrics.Writes.Add(strings.ToLower(e.Action.String()), outcome(e.Failed, "performed"))
	case engine.Fight:
		metrics.Fights.Add()
	case engine.RolledOut:
		metrics.Rollouts.Observe(e.Took)
	case engine.PhaseReady:
		metrics.Phases.Observe(e.Took)
	}
}

// outcome is the value of the label for an attempt that failed or succeeded.
func outcome(failed bool, succeeded string) string {
	if failed {
		return "failed"
	}
	return succeeded
}

// watched exports how much the watches of managed objects remember.
type watched struct {
	kinds func() map[schema.GroupVersionKind]int
}

// Describe names the metrics.
func (w watched) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out, metrics.CacheInformers, metrics.CacheObjects)
}

// Collect counts the records of each kind, of the first ones by name.
func (w watched) Collect(out chan<- prometheus.Metric) {
	kinds := w.kinds()
	out <- metrics.CacheInformers.Value(float64(len(kinds)), "")
	named := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	seen := sets.New[string]() // two long names can be equal within the bound, and a duplicate series fails the scrape
	for _, gvk := range named[:min(len(named), limits.MetricKinds)] {
		if label := metrics.Bound(gvk.String()); !seen.Has(label) {
			seen.Insert(label)
			out <- metrics.CacheObjects.Value(float64(kinds[gvk]), "", label)
		}
	}
}
