package reflector

import (
	"context"
	"errors"
	"io"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/test/require"
)

// TestReflectorListsWhatIsTrue: without streaming lists, client-go first requests any state
// that an API server remembers, and a starting process would act on that.
func TestReflectorListsWhatIsTrue(t *testing.T) {
	var asked []string
	f := &Reflector{Source: &cache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = append(asked, options.ResourceVersion)
		return &corev1.ConfigMapList{}, nil
	}}}
	for _, version := range []string{"0", "", "7"} {
		if _, err := f.list(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil {
			t.Fatal(err)
		}
	}
	require.Equal(t, []string{"", "", "7"}, asked, "resource versions of lists")
}

// The handlers of errors pause by a clock outside the synctest bubble.
func init() { utilruntime.ErrorHandlers = nil }

// TestReflectorAfterOutage: however long the API server was away, and also while one that
// came back refuses everyone until it has read the roles, it is watched again within 30 s.
func TestReflectorAfterOutage(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://h", Err: syscall.ECONNREFUSED}
	lost := &url.Error{Op: "Get", URL: "https://h", Err: io.ErrUnexpectedEOF}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "packages"}, "", errors.New("no"))
	for name, away := range map[string]error{
		"refused": refused, "lost": lost, "forbidden": forbidden,
		"unavailable": apierrors.NewServiceUnavailable("no endpoints"), "overloaded": apierrors.NewTooManyRequests("later", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				const outage = 10 * time.Minute
				begin, reports, connected := time.Now(), 0, time.Duration(0)
				answer := func() error {
					if time.Since(begin) < outage {
						return away
					}
					connected = time.Since(begin)
					return nil
				}
				r := &Reflector{
					Source: &cache.ListWatch{
						ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
							return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, answer()
						},
						WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
							if time.Since(begin) >= outage && ptr.Deref(options.SendInitialEvents, false) {
								return nil, apierrors.NewBadRequest("no streaming lists")
							}
							return watch.NewFake(), answer()
						},
					},
					Store: cache.NewStore(cache.MetaNamespaceKeyFunc),
					Report: func(err error) {
						if reports++; err == nil {
							stop()
						}
					},
				}
				r.Run(logr.NewContext(ctx, logr.Discard()))
				if late := connected - outage; late > 30*time.Second || reports < 10 {
					t.Errorf("connected %s after the end of the outage, %d reports", late, reports)
				}
			})
		})
	}
}

// TestReflectorClosesWatches: client-go leaves a watch open whose list the store refused.
func TestReflectorClosesWatches(t *testing.T) {
	t.Parallel()
	opened := []*watch.FakeWatcher{watch.NewFake(), watch.NewFake()}
	n := 0
	r := &Reflector{Source: &cache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		n++
		return opened[n-1], nil
	}}}
	for range opened {
		if _, err := r.watch(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !opened[0].IsStopped() || opened[1].IsStopped() {
		t.Error("the former watch is to be closed, and it alone")
	}
}

// clumsy is a listener that panics over each object.
type clumsy struct{}

func (clumsy) Listed([]metav1.Object) { panic("hunter2") }
func (clumsy) Changed(metav1.Object)  { panic("hunter2") }
func (clumsy) Deleted(metav1.Object)  { panic("hunter2") }

// TestPanics: client-go ends the process if a store panics.
func TestPanics(t *testing.T) {
	t.Parallel()
	store, object := NewStore[metav1.Object](clumsy{}), &corev1.ConfigMap{}
	for name, err := range map[string]error{
		"add": store.Add(object), "update": store.Update(object), "delete": store.Delete(object), "replace": store.Replace([]any{object}, "1"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	events := frameDecoder{object: func(watch.EventType, string) (runtime.Object, error) { panic("hunter2") }}
	if _, _, err := events.Decode([]byte(`{"type":"ADDED","object":{}}`), nil, nil); err == nil {
		t.Error("an event: no error")
	}
}
