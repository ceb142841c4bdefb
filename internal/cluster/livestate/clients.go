package livestate

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

// clients share one connection pool.
type clients struct {
	config *rest.Config
	pool   *http.Client
	// objects decodes into unstructured objects, metadata into PartialObjectMetadata.
	objects, metadata rest.Interface
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	// A watch has no end; other requests end with their context.
	config.Timeout = 0
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{}
	}
	pool, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client to watch objects: %w", err)
	}

	all := &clients{config: config, pool: pool}
	if all.objects, err = rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), pool); err != nil {
		return nil, fmt.Errorf("make a client to watch objects: %w", err)
	}
	if all.metadata, err = rest.UnversionedRESTClientForConfigAndClient(metadata.ConfigFor(config), pool); err != nil {
		return nil, fmt.Errorf("make a client to watch metadata: %w", err)
	}

	return all, nil
}

// watching returns a client for one watch.
func (c *clients) watching(decode observed) (rest.Interface, error) {
	config := dynamic.ConfigFor(c.config)
	config.NegotiatedSerializer = reflector.Events{NegotiatedSerializer: config.NegotiatedSerializer, Object: decode.object}
	return rest.UnversionedRESTClientForConfigAndClient(config, c.pool)
}
