package manager

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/kube/mutationcache"
)

// own watches our own kinds. Nearly every event of them is a write of ours that
// comes back: its answer, which a store still has, is that very state, so it is
// copied instead of being decoded once more.
type own struct {
	config *rest.Config
	pool   *http.Client
	scheme *runtime.Scheme
	// packages and deployments have the answers to the writes of their controllers.
	packages, deployments *mutationcache.Store
	// newest is that of all of our kinds: custom resources are in one store, which
	// numbers their versions together.
	newest livestate.Newest
}

func newOwn(config *rest.Config, scheme *runtime.Scheme) (*own, error) {
	pool, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client to watch packages: %w", err)
	}
	return &own{config: config, pool: pool, scheme: scheme, packages: mutationcache.NewStore(), deployments: mutationcache.NewStore()}, nil
}

// source returns where an informer's objects come from: lists by lw, and watches of
// our own kinds by a client of ours.
func (o *own) source(lw toolscache.ListerWatcherWithContext, of runtime.Object) toolscache.ListerWatcherWithContext {
	kinds, _, err := o.scheme.ObjectKinds(of)
	if err != nil || kinds[0].GroupVersion() != corev1alpha1.GroupVersion {
		return lw
	}
	config := rest.CopyConfig(o.config)
	config.APIPath, config.GroupVersion = "/apis", &corev1alpha1.GroupVersion
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = reflector.Events{
		NegotiatedSerializer: serializer.NewCodecFactory(o.scheme).WithoutConversion(),
		Object:               decoder{of: reflect.TypeOf(of).Elem(), known: o.state}.object,
	}
	c, err := rest.RESTClientForConfigAndClient(config, o.pool)
	if err != nil {
		return lw // it cannot be made by the same configuration either, and says so
	}
	plural, _ := meta.UnsafeGuessKindToResource(kinds[0]) // as our CRDs have it
	return &watching{ListerWatcherWithContext: lw, client: c, resource: plural.Resource, parameters: runtime.NewParameterCodec(o.scheme)}
}

// state returns the object in that very state, if it is the answer to a write of
// ours.
func (o *own) state(uid types.UID, resourceVersion string) client.Object {
	if known := o.deployments.State(uid, resourceVersion); known != nil {
		return known
	}
	return o.packages.State(uid, resourceVersion)
}

// watching watches one of our own kinds.
type watching struct {
	toolscache.ListerWatcherWithContext
	client     rest.Interface
	resource   string
	parameters runtime.ParameterCodec
}

// WatchWithContext opens a watch. It does not wait where the API server says for how
// long, a second at least: to prepare a kind that is new takes it some milliseconds,
// and who asks again has pauses that grow.
func (w *watching) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch, options.AllowWatchBookmarks = true, true
	return w.client.Get().Resource(w.resource).VersionedParams(&options, w.parameters).MaxRetries(0).Watch(ctx)
}

// decoder makes objects of one type.
type decoder struct {
	of    reflect.Type
	known func(types.UID, string) client.Object
}

func (d decoder) object(typ watch.EventType, text string) (runtime.Object, error) {
	if typ != watch.Deleted {
		names := gjson.GetMany(text, "metadata.uid", "metadata.resourceVersion")
		known := d.known(types.UID(names[0].String()), names[1].String())
		if known != nil && reflect.TypeOf(known).Elem() == d.of {
			return known, nil
		}
	}
	live := reflect.New(d.of).Interface().(runtime.Object)
	if err := json.Unmarshal([]byte(text), live); err != nil {
		return nil, fmt.Errorf("decode an object of a watch: %w", err)
	}
	live.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // the type says it
	return live, nil
}
