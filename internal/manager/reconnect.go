package manager

import (
	"context"
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/limits"
)

// newInformer returns an informer that connects soon after an outage. client-go's
// own pauses grow to a minute where the API server goes away several times within
// two minutes, and for so long nothing is known of what changes.
func newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return reconnect(ctx, func() (watch.Interface, error) { return inner.WatchWithContext(ctx, options) })
		},
	}, obj, resync, indexers)
}

// reconnect repeats a request while the API server is away. Other errors are for
// client-go, which may have to list again.
func reconnect(ctx context.Context, request func() (watch.Interface, error)) (watch.Interface, error) {
	pauses := wait.Backoff{Duration: limits.WatchBackoffMin, Cap: limits.ReconnectMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for {
		w, err := request()
		if err == nil || !away(err) {
			return w, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pauses.Step()):
		}
	}
}

// away tells that no API server answered, or one that says that it cannot yet.
func away(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || apierrors.IsServiceUnavailable(err)
}
