package reflector

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// flaky is a source of one Package, whose next watches after each change break before
// they report it.
type flaky struct {
	mu      sync.Mutex
	version int
	// breaking is the number of watches that will break: by expired versions if expired is set,
	// otherwise by cut connections.
	breaking int
	expired  bool
	// away means that no request is answered, lost that connections to a load balancer
	// before it are cut instead.
	away, lost bool
}

var errAway = &url.Error{Op: "Get", URL: "https://here", Err: errors.New("connection refused")}

func (f *flaky) change(breaking int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.breaking = f.version+1, breaking
}

func (f *flaky) object() corev1alpha1.Package {
	version := strconv.Itoa(f.version)
	return corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", UID: "1", ResourceVersion: version}}
}

func (f *flaky) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return nil, errAway
	}
	return &corev1alpha1.PackageList{
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}, Items: []corev1alpha1.Package{f.object()},
	}, nil
}

func (f *flaky) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	away, lost := f.away, f.lost
	f.mu.Unlock()
	switch {
	case away && lost:
		return watch.NewEmptyWatch(), nil // as client-go's REST client
	case away:
		return nil, errAway
	}
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("no streams")
	}
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		for {
			f.mu.Lock()
			now, broken, away := f.object(), f.breaking > 0, f.away
			behind := options.ResourceVersion != now.ResourceVersion
			if behind && broken {
				f.breaking--
			}
			f.mu.Unlock()
			event := watch.Event{Type: watch.Modified, Object: &now}
			switch {
			case away:
				return
			case behind && broken && !f.expired:
				return
			case behind && broken:
				status := apierrors.NewResourceExpired("too old").Status()
				event = watch.Event{Type: watch.Error, Object: &status}
			}
			if behind {
				select {
				case events <- event:
					options.ResourceVersion = now.ResourceVersion
				case <-w.StopChan():
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-w.StopChan():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return w, nil
}

// newTestInformer starts an informer of a source; stop waits for its end.
func newTestInformer(ctx context.Context, lw *cache.ListWatch) (informer cache.SharedIndexInformer, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	informer = cache.NewSharedIndexInformer(Ordered(lw, &Newest{}), &corev1alpha1.Package{}, 0, cache.Indexers{})
	ended := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(ended) }()
	return informer, func() { cancel(); <-ended }
}

// TestInformerFollowsAfterOutage: an informer is up to date within 30 s after an outage of any
// length. client-go's own can take a minute.
func TestInformerFollowsAfterOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"short": 5 * time.Second, "long": 10 * time.Minute} {
		for kind, source := range map[string]*flaky{
			"connections that are cut": {}, "versions that expired": {expired: true}, "lost answers": {lost: true},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					source.version = 1
					informer, stop := newTestInformer(t.Context(), &cache.ListWatch{ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext})
					defer stop()
					time.Sleep(time.Minute)
					source.set(func() { source.away = true })
					time.Sleep(outage)
					source.change(3)
					source.set(func() { source.away = false })
					begun := time.Now()
					for cachedVersion(informer) != "2" {
						time.Sleep(10 * time.Millisecond)
						if late := time.Since(begun); late > 30*time.Second {
							t.Fatalf("the informer is %s late", late)
						}
					}
				})
			})
		}
	}
}

func (f *flaky) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// cachedVersion returns the version of the object in the informer's cache.
func cachedVersion(informer cache.SharedIndexInformer) string {
	for _, o := range informer.GetStore().List() {
		return o.(*corev1alpha1.Package).ResourceVersion
	}
	return ""
}

// TestOldLists: a list of an API server that is behind does not bring back an earlier
// state, also if that was of another kind, or if the list is streamed. If lists stay old, the
// cluster was restored from a backup.
func TestOldLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// seen is the last version of another kind, and own of this kind. ask is the version
		// that client-go would request, and asked the requested one.
		seen, own, ask, asked string
		// lists are the versions of lists that come, one each half of limits.OldLists.
		lists []string
		want  string
	}{
		"behind once":     {"the next list is requested", "", "14", "14", "14", []string{"12", "15"}, "15"},
		"behind for long": {"14 is not true any more", "", "14", "14", "14", []string{"12", "12", "12"}, "12"},
		"behind at times": {"each time is short", "", "14", "14", "14", []string{"12", "15", "12", "15"}, "15"},
		"as old as known": {"no event was missed", "", "14", "14", "14", []string{"14"}, "14"},
		"no number":       {"versions that cannot be compared are believed", "", "14", "14", "14", []string{"x"}, "x"},
		"from a cache":    {"a list decides which objects are absent", "", "", "0", "", []string{"12"}, "12"},
		"another kind":    {"the API server is behind once", "20", "", "", "", []string{"12", "20"}, "20"},
		"reconnected":     {"our own version can be older", "20", "12", "12", "", []string{"20"}, "20"},
		"further":         {"the other kind is older", "20", "30", "30", "30", []string{"30"}, "30"},
		"restored":        {"all lists are old", "20", "12", "12", "", []string{"12", "12", "12"}, "12"},
	} {
		for how, streamed := range map[string]bool{"listed": false, "streamed": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					tc, next := tc, ""
					lw := &cache.ListWatch{
						ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
							require.Equal(t, tc.asked, o.ResourceVersion, "requested with")
							return &corev1alpha1.PackageList{ListMeta: metav1.ListMeta{ResourceVersion: next}}, nil
						},
						WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
							require.Equal(t, tc.asked, o.ResourceVersion, "requested with")
							events := watch.NewFakeWithChanSize(1, false)
							end := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{ResourceVersion: next}}
							end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
							events.Action(watch.Bookmark, end)
							return events, nil
						},
					}
					var newest Newest
					other := newOrdered(lw, &newest)
					other.observe(watch.Event{Type: watch.Modified, Object: at(tc.seen)})
					s := newOrdered(lw, &newest)
					s.observe(watch.Event{Type: watch.Modified, Object: at(tc.own)})
					got := ""
					for _, next = range tc.lists {
						if request(t, s, tc.ask, streamed) {
							got = next
							tc.asked, tc.ask = next, next
						}
						time.Sleep(limits.OldLists / 2)
					}
					require.Equal(t, tc.want, got, "a list of version")
				})
			})
		}
	}
}

// TestOrderedAsks once for each list, plain or streamed: versions seen after the first page do not
// affect the other pages, and a watch continues at the end of the list.
func TestOrderedAsks(t *testing.T) {
	var got []string
	note := func(options metav1.ListOptions) { got = append(got, options.Continue+"@"+options.ResourceVersion) }
	newest := &Newest{}
	newest.advance(9)
	f := newOrdered(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			note(options)
			return &corev1alpha1.PackageList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			note(options)
			return watch.NewFake(), nil
		},
	}, newest)
	for _, options := range []metav1.ListOptions{{ResourceVersion: "1"}, {Continue: "second", ResourceVersion: ""}} {
		if _, err := f.list(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	for _, options := range []metav1.ListOptions{{ResourceVersion: "2", SendInitialEvents: ptr.To(true)}, {ResourceVersion: "3"}} {
		if _, err := f.watch(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	require.Equal(t, []string{"@", "second@", "@", "@3"}, got, "requests")
}

func at(version string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: version}}
}

// request requests a list and reports whether it is accepted.
func request(t *testing.T, s *ordered, version string, streamed bool) bool {
	t.Helper()
	options := metav1.ListOptions{ResourceVersion: version}
	if !streamed {
		_, err := s.list(t.Context(), options)
		if err != nil && !errors.Is(err, ErrOld) {
			t.Fatal(err)
		}
		return err == nil
	}
	options.SendInitialEvents = ptr.To(true)
	w, err := s.watch(t.Context(), options)
	require.NoError(t, err)
	defer w.Stop()
	return (<-w.ResultChan()).Type == watch.Bookmark
}
