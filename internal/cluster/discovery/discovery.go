package discovery

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

const (
	discoveryDebounce = 200 * time.Millisecond // changes of APIServices within it become one refresh of discovery
	// discoveryAttempts are reads of discovery that lack the group of an available APIService. They
	// take over a minute, after which the API server reads a stale group again at the latest.
	discoveryAttempts = 14
)

// Options configure a Discovery. The functions must not block.
type Options struct {
	// Used returns the kinds in use.
	Used func() []schema.GroupKind
	// Changed is called with kinds whose versions or scope changed, and after each attempt at the
	// first discovery with the kinds in use.
	Changed func(kinds []schema.GroupKind)
	// VersionChanged is called when the version of the API server was read or changed; it may be nil.
	VersionChanged func(v version.Info)
	// Held receives the change in the number of bytes kept of the API server's answers. It can
	// be nil.
	Held func(bytes int64)
}

// Discovery knows the kinds that the API server serves. It is safe for concurrent use.
type Discovery struct {
	options     Options
	client      *discovery.DiscoveryClient
	definitions rest.Interface
	index       *index
	watches     sync.WaitGroup

	// wake is filled when one of the wants is set.
	wake                       chan struct{}
	wantDiscovery, wantVersion atomic.Bool
	version                    atomic.Pointer[version.Info]
	// crdsKnown is closed when the watch of CRDs has received a list or has failed.
	crdsKnown chan struct{}
	crdsOnce  sync.Once

	mu sync.Mutex
	// available are the group versions that other API servers serve, by the name of the
	// APIService.
	available map[string]schema.GroupVersion
	// held is the memory that was reported.
	held int64
}

// New returns a Discovery that works once Run is called. Its clients share pool.
func New(config *rest.Config, pool *http.Client, options Options) (*Discovery, error) {
	typed := rest.CopyConfig(config)
	typed.ContentType, typed.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	typed.NegotiatedSerializer = serializer.NewCodecFactory(definitions).WithoutConversion()
	watching, err := rest.UnversionedRESTClientForConfigAndClient(typed, pool)
	if err != nil {
		return nil, fmt.Errorf("make a client to watch CRDs: %w", err)
	}

	reading, err := discovery.NewDiscoveryClientForConfigAndClient(config, pool)
	if err != nil {
		return nil, fmt.Errorf("make a client to read discovery: %w", err)
	}
	return &Discovery{
		options: options, client: reading, definitions: watching, index: newIndex(),
		wake: make(chan struct{}, 1), crdsKnown: make(chan struct{}), available: map[string]schema.GroupVersion{},
	}, nil
}

// Find returns a kind; nil if it is not served. An error means that this is unknown.
func (d *Discovery) Find(gk schema.GroupKind) (*Kind, error) { return d.index.find(gk) }

// Mapping returns the mapping of a kind in a version, by default the preferred one, without a
// request. The error is a NoKindMatchError if the kind is not served. If that is unknown, it is
// ErrNotReady or the error of an unavailable API.
func (d *Discovery) Mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	return d.index.mapping(gk, version)
}

// Reload reads discovery again.
func (d *Discovery) Reload() { d.request(&d.wantDiscovery) }

func (d *Discovery) request(want *atomic.Bool) {
	want.Store(true)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run returns when the context and its watches have ended.
func (d *Discovery) Run(ctx context.Context) {
	defer d.watches.Wait()
	c := &crds{Discovery: d, ListerWatcherWithContext: d.counted(crdResource)}
	d.watch(ctx, crdResource.Resource, c, c)
	retry(ctx, limits.WatchBackoffMin, d.start)
	if k, _ := d.Find(schema.GroupKind{Group: apiServiceResource.Group, Kind: "APIService"}); k != nil {
		d.watch(ctx, apiServiceResource.Resource, d.counted(apiServiceResource), apiServices{d})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
			d.updateAll(ctx)
		}
	}
}

// updateAll reads the requested groups until they are complete, discoveryAttempts times.
func (d *Discovery) updateAll(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(discoveryDebounce):
	}

	attempts := 0
	retry(ctx, discoveryDebounce, func(ctx context.Context) (done bool) {
		complete, err := d.update(ctx)
		if err != nil || complete {
			return complete
		}
		if attempts++; attempts == discoveryAttempts {
			return true
		}
		d.wantDiscovery.Store(true)
		return false
	})
}

// retry calls do with growing pauses until it reports true or the context ends.
func retry(ctx context.Context, first time.Duration, do func(context.Context) bool) {
	backoff := reflector.Backoff()
	backoff.Duration = first
	_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (done bool, _ error) {
		_ = panics.Guard(context.Background(), "discovery", func() error { done = do(ctx); return nil })
		return done, nil
	})
}

// start reads everything for the first time.
func (d *Discovery) start(ctx context.Context) bool {
	err := d.readAll(ctx)
	if err != nil {
		d.index.fail(err)
	}
	d.options.Changed(d.options.Used())
	return err == nil
}

func (d *Discovery) readAll(ctx context.Context) error {
	if err := d.readVersion(ctx); err != nil {
		return err
	}
	found, failed, err := d.read(ctx)
	if err != nil {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.crdsKnown:
	}

	d.index.discover(found, failed, nil)
	d.count()
	return nil
}

// update reads the requested groups, again after an error. It reports false if discovery lacks an
// available APIService, because the API server adds it with a delay.
func (d *Discovery) update(ctx context.Context) (complete bool, err error) {
	if d.wantVersion.Swap(false) {
		before := *d.version.Load()
		if err := d.readVersion(ctx); err != nil {
			d.wantVersion.Store(true)
			return false, err
		}
		if *d.version.Load() != before {
			d.wantDiscovery.Store(true)
		}
	}

	if !d.wantDiscovery.Swap(false) {
		return true, nil
	}

	offered := d.offered()
	found, failed, err := d.read(ctx)
	if err != nil {
		d.wantDiscovery.Store(true)
		return false, err
	}

	kinds, groups := d.index.discover(found, failed, offered)
	d.count()
	for _, gk := range d.options.Used() {
		if k, _ := d.Find(gk); k == nil && groups[gk.Group] && !slices.Contains(kinds, gk) {
			kinds = append(kinds, gk)
		}
	}

	d.options.Changed(kinds)
	for gv := range d.offered() {
		if !d.index.serves(gv) {
			return false, nil
		}
	}

	return true, nil
}

// offered returns the group versions that other API servers offer at present.
func (d *Discovery) offered() map[schema.GroupVersion]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[schema.GroupVersion]bool{}
	for _, gv := range d.available {
		all[gv] = true
	}
	return all
}

func (d *Discovery) readVersion(ctx context.Context) error {
	v, err := d.client.ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the API server: %w", err)
	}
	if before := d.version.Swap(v); d.options.VersionChanged != nil && (before == nil || *before != *v) {
		d.options.VersionChanged(*v)
	}
	return nil
}

// read reads discovery: two requests, or some dozens from API servers before Kubernetes
// 1.26.
func (d *Discovery) read(ctx context.Context) (map[schema.GroupKind]*Kind, map[schema.GroupVersion]error, error) {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, d.client)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("read what the API server serves: %w", err)
	}
	return kindsOf(groups, lists), failed, nil
}
