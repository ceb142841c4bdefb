package manager

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"lockstep.run/lockstep/internal/cluster/reflector"
)

// resync is how often everything is reconciled without a reason. Watches report
// every change, so this is a safety net; it sends no request.
const resync = 24 * time.Hour

// cacheOptions returns the options of the caches of this API group.
func cacheOptions(c *Config) cache.Options {
	var newest reflector.Newest
	own := &ownKinds{c.Account}
	return cache.Options{
		ByObject: phasesOf(c.Class), DefaultNamespaces: onlyIn(c.WatchNamespace),
		SyncPeriod:       ptr.To(resync),
		DefaultTransform: own.compactSafely,
		NewInformer: func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			informer := toolscache.NewSharedIndexInformer(reflector.Ordered(lw, &newest), obj, resync, indexers)
			_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: own.deleted}) // it has not stopped
			return informer
		},
		// A kind that is not watched must not start a watch of its own by a Get.
		ReaderFailOnMissingInformer: true,
	}
}

// newCache makes caches whose watches, many and mostly silent, share one connection over HTTP/2.
// config has no timeout.
func newCache(config *rest.Config) cache.NewCacheFunc {
	return func(_ *rest.Config, options cache.Options) (cache.Cache, error) {
		options.HTTPClient = nil
		return cache.New(config, options)
	}
}
