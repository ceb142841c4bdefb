package manager

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/livestate"
)

// newInformer returns an informer that connects soon after an outage. client-go's
// own pauses grow to a minute where the API server goes away several times within
// two minutes, and for so long nothing is known of what changes.
func newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			request := func() (watch.Interface, error) { return inner.WatchWithContext(ctx, options) }
			return livestate.Reconnect(ctx, request, func(error) {})
		},
	}, obj, resync, indexers)
}
