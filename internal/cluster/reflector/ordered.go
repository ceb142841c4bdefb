package reflector

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Ordered returns a source of one kind for an informer. It repeats failed requests with the delays
// of [Backoff], because the informer's own delays grow to a minute. It refuses lists that are older
// than the newest observed version. newest is shared by all kinds of an API group.
func Ordered(lw cache.ListerWatcher, newest *Newest) cache.ListerWatcher {
	s := newOrdered(lw, newest)
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

type ordered struct {
	cache.ListerWatcherWithContext

	mu       sync.Mutex
	progress Progress
}

func newOrdered(lw cache.ListerWatcher, newest *Newest) *ordered {
	return &ordered{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), progress: Progress{Newest: newest}}
}

func (s *ordered) list(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
	err = retry(ctx, func() error {
		if options.Continue == "" { // otherwise it is a page of the same list
			s.ask(&options)
		}
		if list, err = s.ListWithContext(ctx, options); err != nil {
			return err
		}
		m, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		return s.accept(m.GetResourceVersion())
	})

	return list, err
}

func (s *ordered) watch(ctx context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
	err = retry(ctx, func() error {
		if ptr.Deref(options.SendInitialEvents, false) {
			s.ask(&options)
		}
		w, err = s.WatchWithContext(ctx, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, s.observe), nil
}

// retry repeats a request until the context ends, except for errors to which the
// informer reacts at once by another request.
func retry(ctx context.Context, request func() error) (err error) {
	delays := Backoff()
	ended := delays.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err = request()
		if err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
			apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			return true, nil
		}
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to list or watch, and will try again")
		return false, nil
	})
	if err == nil {
		err = ended
	}

	return err
}

// ask makes options request a list that is as new as the newest observed version.
func (s *ordered) ask(options *metav1.ListOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	options.ResourceVersion = s.progress.Request(consistent(options.ResourceVersion))
}

func (s *ordered) accept(version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.progress.Accept(version); err != nil {
		return err
	}
	s.progress.Restart(version)
	return nil
}

// observe passes events on, except for the end of a streamed list that is too old.
func (s *ordered) observe(e watch.Event) (watch.Event, bool) {
	m, err := meta.Accessor(e.Object)
	if e.Type == watch.Error || err != nil {
		return e, true
	}
	if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		if err := s.accept(m.GetResourceVersion()); err != nil {
			status := apierrors.NewServiceUnavailable(err.Error()).Status()
			return watch.Event{Type: watch.Error, Object: &status}, true
		}
		return e, true
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Advance(m.GetResourceVersion())
	return e, true
}
