package livestate

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/limits"
)

// stream keeps a store up to date with one resource: a list, streamed where the
// API server can, then a watch that goes on where it broke off. The protocol is
// client-go's Reflector; the requests, their errors and the pauses between
// them are here.
type stream struct {
	client   rest.Interface
	path     []string
	selector string
	fields   string
	// accept returns what to ask for by a list or a watch; nil for whole objects.
	accept func(watch bool) string
	store  cache.ReflectorStore
	// newList makes what a page of a list is decoded into; trim makes of it what
	// is kept.
	newList func() runtime.Object
	trim    func(page runtime.Object) runtime.Object
	// failed is told every error, connected every request that was answered, and
	// restored the first one that was after a watch broke; it may be nil.
	failed              func(error)
	connected, restored func()

	// refused is the error of the streamed list that the Reflector follows up
	// with a plain list, which would fail as well.
	refused error
	// until is up to when the last watch was asked for, and broke means that a
	// request failed since.
	until time.Time
	broke bool
}

// run works until the context ends.
func (s *stream) run(ctx context.Context) {
	f := &Follower{Name: "livestate", Type: s.path[len(s.path)-1], Source: s, Store: s.store, Failed: s.fail}
	f.Run(ctx)
}

// ListWithContext sends a LIST. It is asked for only where the API server has
// no streaming lists.
func (s *stream) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := s.refused; err != nil {
		s.refused = nil
		return nil, err
	}
	if options.ResourceVersion == "" {
		options.Limit = limits.WatchPage
	}
	page := s.newList()
	if err := s.request(&options).Do(ctx).Into(page); err != nil {
		return nil, err
	}
	s.answered(time.Time{})
	return s.trim(page), nil
}

// WatchWithContext opens a watch, or a list that is streamed by one.
func (s *stream) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	var begun time.Time
	request := func() (watch.Interface, error) {
		begun = time.Now()
		return s.request(&options).Watch(ctx)
	}
	w, err := Reconnect(ctx, request, s.fail)
	if err == nil {
		s.answered(begun.Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second))
		return w, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if options.SendInitialEvents == nil {
		s.fail(err)
		return nil, err
	}
	if streamUnsupported(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || isTooLargeVersion(err) {
		return nil, err
	}
	s.refused = err
	// Some errors the Reflector would wait for by itself, deaf to its context.
	return nil, fmt.Errorf("stream a list: %s", err.Error())
}

// answered notes an answer, and up to when a watch was asked for by it. One that
// ended in order lasted as long; where one did not, the API server may have been
// replaced.
func (s *stream) answered(until time.Time) {
	broke := s.broke || time.Now().Before(s.until)
	s.until, s.broke = until, false
	s.connected()
	if broke && s.restored != nil {
		s.restored()
	}
}

// fail notes an error.
func (s *stream) fail(err error) {
	s.broke = s.broke || !s.until.IsZero()
	s.failed(err)
}

func (s *stream) request(options *metav1.ListOptions) *rest.Request {
	options.LabelSelector, options.FieldSelector = s.selector, s.fields
	r := s.client.Get().AbsPath(s.path...)
	if s.accept != nil {
		r.SetHeader("Accept", s.accept(options.Watch))
	}
	return r.
		SpecificallyVersionedParams(options, parameters, schema.GroupVersion{Version: "v1"}).
		// Pauses between attempts are this package's.
		MaxRetries(0)
}

// parameters encodes list options into a query.
var parameters = func() runtime.ParameterCodec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(scheme)
}()

// streamUnsupported reports whether the API server knows no streaming lists: it
// refuses their parameters.
func streamUnsupported(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// isTooLargeVersion reports whether the API server's store is older than what was
// seen of it, for example after a restore.
func isTooLargeVersion(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// isNotServed reports whether the resource is not there.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == 404
}
