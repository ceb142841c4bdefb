package reflector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

// Reflector keeps a store in step with a source.
type Reflector struct {
	// Name and Type are for logs.
	Name, Type string
	// Of is an example of the objects; nil takes any.
	Of     runtime.Object
	Source cache.ListerWatcherWithContext
	Store  cache.ReflectorStore
	// Report receives the outcome of each request; it may be nil.
	Report func(error)

	// opened is the last watch. client-go's Reflector leaves it open when the store
	// refuses its list.
	opened watch.Interface
}

// Run lists and watches until the context ends.
func (r *Reflector) Run(ctx context.Context) {
	backoff := Backoff()
	source := &cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}
	reflector := cache.NewReflectorWithOptions(source, r.Of, r.Store, cache.ReflectorOptions{
		Name: r.Name, TypeDescription: r.Type, Backoff: &backoff,
	})
	// A connection that breaks within an event does not require another list.
	reflector.MaxInternalErrorRetryDuration = time.Second
	reflector.RunWithContext(ctx)
	r.closeWatch()
}

// Backoff returns the pauses between attempts.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: limits.WatchBackoffMin, Cap: limits.WatchBackoffMax, Factor: 2, Jitter: 0.2, Steps: 32}
}

// consistent returns the resource version to list at instead of another. A list proves absence, so
// it must not come from an API server's cache of any age.
func consistent(version string) string {
	if version == "0" {
		return ""
	}
	return version
}

func (r *Reflector) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion = consistent(options.ResourceVersion)
	var list runtime.Object
	err := panics.Guard(context.Background(), "reading a list of "+r.Type, func() (err error) {
		list, err = r.Source.ListWithContext(ctx, options)
		return err
	})
	r.report(ctx, err)
	return list, err
}

func (r *Reflector) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	streamed := ptr.Deref(options.SendInitialEvents, false)
	r.closeWatch()
	w, err := r.Source.WatchWithContext(ctx, options)
	if err != nil {
		if !(streamed && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))) { // no streaming lists
			r.report(ctx, err)
		}
		return nil, err
	}

	r.opened = w
	r.report(ctx, nil)
	return w, nil
}

func (r *Reflector) closeWatch() {
	if r.opened != nil {
		r.opened.Stop()
		r.opened = nil
	}
}

// report passes on the outcome of a request, unless the API server does not have the resource
// version: then client-go's Reflector lists at once.
func (r *Reflector) report(ctx context.Context, err error) {
	expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	if r.Report != nil && !expired && ctx.Err() == nil {
		r.Report(err)
	}
}
