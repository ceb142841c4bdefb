package livestate

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// clients share one connection pool.
type clients struct {
	config *rest.Config
	pool   *http.Client
	// objects decodes into unstructured objects, definitions into the types of
	// crds.go; metadata asks for metadata alone.
	objects, definitions, metadata rest.Interface
	discovery                      *discovery.DiscoveryClient
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
	if all.objects, err = unversioned(dynamic.ConfigFor(config), pool); err != nil {
		return nil, fmt.Errorf("make a client to watch objects: %w", err)
	}
	if all.metadata, err = unversioned(metadata.ConfigFor(config), pool); err != nil {
		return nil, fmt.Errorf("make a client to watch metadata: %w", err)
	}
	typed := rest.CopyConfig(config)
	typed.ContentType, typed.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	typed.NegotiatedSerializer = serializer.NewCodecFactory(definitions).WithoutConversion()
	if all.definitions, err = unversioned(typed, pool); err != nil {
		return nil, fmt.Errorf("make a client to watch CRDs: %w", err)
	}
	if all.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, pool); err != nil {
		return nil, fmt.Errorf("make a client to read discovery: %w", err)
	}
	return all, nil
}

// watching returns a client for one watch; see Events.
func (c *clients) watching(known func(name, types.UID, string) bool) (rest.Interface, error) {
	config := dynamic.ConfigFor(c.config)
	config.NegotiatedSerializer = Events{NegotiatedSerializer: config.NegotiatedSerializer, Object: observed{known}.object}
	client, err := unversioned(config, c.pool)
	if err != nil {
		return nil, fmt.Errorf("make a client to watch objects: %w", err)
	}
	return client, nil
}

// unversioned returns a client whose requests name their path in full.
func unversioned(config *rest.Config, pool *http.Client) (rest.Interface, error) {
	config.GroupVersion, config.APIPath = nil, "/"
	return rest.UnversionedRESTClientForConfigAndClient(config, pool)
}

// collection returns the path of all objects of a resource, in one namespace
// where it is not empty.
func collection(r schema.GroupVersionResource, namespace string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource)
}
