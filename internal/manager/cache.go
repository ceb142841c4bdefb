package manager

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/reflector"
)

// resync is the interval at which everything is reconciled without a reason. Watches report every
// change, so this is a safety net; it sends no request.
const resync = 24 * time.Hour

// cacheOptions returns the options of the caches of this API group.
func cacheOptions(c *Config) cache.Options {
	var newest reflector.Newest
	own := &ownKinds{c.Account}
	var byObject map[client.Object]cache.ByObject // limits the caches of an agent to its class
	if c.Class != "" {
		of := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{corev1alpha1.PhaseClassLabel: c.Class})}
		byObject = map[client.Object]cache.ByObject{&corev1alpha1.ObjectSetPhase{}: of, &corev1alpha1.ClusterObjectSetPhase{}: of}
	}
	var namespaces map[string]cache.Config // nil for all
	if c.WatchNamespace != "" {
		namespaces = map[string]cache.Config{c.WatchNamespace: {}}
	}

	return cache.Options{
		ByObject: byObject, DefaultNamespaces: namespaces,
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
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("make a client for the caches: %w", err)
		}
		options.HTTPClient = client
		if newInformer := options.NewInformer; newInformer != nil && len(options.ByObject) == 0 && len(options.DefaultNamespaces) == 0 {
			options.NewInformer = func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
				if source, err := sourceOf(config, &options, obj); err == nil && source != nil {
					lw = source
				}
				return newInformer(lw, obj, resync, indexers)
			}
		}
		return cache.New(config, options)
	}
}

// sourceOf returns a source of all objects of a kind. It decodes events faster than
// controller-runtime's, because at a start every object is an event. It is nil for metadata alone.
func sourceOf(config *rest.Config, options *cache.Options, obj runtime.Object) (toolscache.ListerWatcher, error) {
	gvk, err := apiutil.GVKForObject(obj, options.Scheme)
	if err != nil {
		return nil, err
	}
	if object, err := options.Scheme.New(gvk); err != nil || reflect.TypeOf(object) != reflect.TypeOf(obj) {
		return nil, err
	}

	mapping, err := options.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}

	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = reflector.Events{
		NegotiatedSerializer: serializer.NewCodecFactory(options.Scheme).WithoutConversion(),
		Object: func(_ watch.EventType, text string) (runtime.Object, error) {
			object, err := options.Scheme.New(gvk)
			if err != nil {
				return nil, err
			}
			rest, _ := reflector.CutManagedFields(text) // a third of it, which compact drops
			err = json.Unmarshal(rest, object)
			object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as typed clients do
			return object, err
		},
	}

	client, err := rest.UnversionedRESTClientForConfigAndClient(config, options.HTTPClient)
	if err != nil {
		return nil, err
	}

	source := &reflector.Source{Client: client, Resource: mapping.Resource, NewList: func() runtime.Object {
		list, _ := options.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		return list
	}}

	return &toolscache.ListWatch{ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext}, nil
}
