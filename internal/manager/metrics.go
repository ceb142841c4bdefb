package manager

import (
	"crypto/tls"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"lockstep.run/lockstep/internal/limits"
)

// metricsOptions returns how /metrics is served: over TLS, to those alone whose token the API server knows, and who may get
// /metrics. They name every package of the cluster.
func metricsOptions(c *Config, config *rest.Config) metricsserver.Options {
	options := metricsserver.Options{BindAddress: c.MetricsAddress}
	if !c.MetricsSecure {
		return options
	}
	options.SecureServing = true
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	options.FilterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
		// Not the guarded client: a manager without the Lease has metrics, too. Whoever reaches the port causes reviews, so
		// that these have a rate of their own.
		reviews := rest.CopyConfig(config)
		reviews.QPS, reviews.Burst = limits.MetricsReviews, limits.MetricsReviews
		httpClient, err := rest.HTTPClientFor(reviews)
		if err != nil {
			return nil, err
		}
		return filters.WithAuthenticationAndAuthorization(reviews, httpClient)
	}
	return options
}
