package manager

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

// newInformer returns an informer that is up to date soon after an outage, however
// often its watch breaks. client-go's informers pause for up to a minute then, and
// cannot be told otherwise: so this one is given a watch that never ends.
func newInformer(source toolscache.ListerWatcherWithContext, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers, newest *livestate.Newest) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(newRelay(&reconnecting{source}, obj, newest), obj, resync, indexers)
}

// reconnecting is a source that is asked for a watch until it answers.
type reconnecting struct {
	toolscache.ListerWatcherWithContext
}

// WatchWithContext opens a watch.
func (r *reconnecting) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	request := func() (watch.Interface, error) { return r.ListerWatcherWithContext.WatchWithContext(ctx, options) }
	return livestate.Reconnect(ctx, request, func(error) {})
}

// ask notes that a list is asked for, and returns its resource version.
func (r *relay) ask(version string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress.Ask(version)
}

// follow keeps the relay up to date until the informer's context ends.
func (r *relay) follow(ctx context.Context) {
	kind := fmt.Sprintf("%T", r.of)
	follower := &livestate.Follower{
		Name: "informer", Type: kind, Of: r.of, Source: r.source, Store: r, Ask: r.ask,
		Failed: func(err error) {
			utilruntime.HandleErrorWithContext(ctx, err, "Cannot list and watch, trying again", "type", kind)
		},
	}
	follower.Run(ctx)
}
