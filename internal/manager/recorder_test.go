package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// eventServer is an API server that takes events after some errors.
type eventServer struct {
	eventsclient.EventInterface
	mu        sync.Mutex
	errs      []error
	namespace string
	got       []string
}

func (a *eventServer) Events(namespace string) eventsclient.EventInterface {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.namespace = namespace
	return a
}

func (a *eventServer) Create(_ context.Context, e *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if len(a.errs) > 0 {
		err, a.errs = a.errs[0], a.errs[1:]
	}
	a.got = append(a.got, fmt.Sprintf("%s %s/%s %s %s: %s (%v)", e.Regarding.Kind, a.namespace, e.Regarding.Name, e.Type, e.Reason, e.Note, err))
	return e, err
}

// sent returns the events that have been sent, and how many errors are still to come.
func (a *eventServer) sent() (events []string, errs int) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got), len(a.errs)
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", errors.New("no"))
	busy, silent := apierrors.NewTooManyRequestsError("busy"), errors.New("no answer")
	scheme := newScheme(t)
	const sent = "Package shop/one Normal Installed: it is 1 (<nil>)"
	for name, tc := range map[string]struct {
		reason string
		about  runtime.Object
		errs   []error
		want   []string
	}{
		"sent":     {reason: "once", want: []string{sent}},
		"refused":  {reason: "the same event is refused again", errs: []error{refused}, want: []string{fmt.Sprintf("Package shop/one Normal Installed: it is 1 (%v)", refused)}},
		"repeated": {reason: "what time may cure is sent again", errs: []error{busy, silent}, want: []string{"Package shop/one Normal Installed: it is 1 (Too many requests: busy)", "Package shop/one Normal Installed: it is 1 (no answer)", sent}},
		"cluster-scoped": {
			reason: "its events are in the default namespace, as of any kind",
			about:  &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
			want:   []string{"ClusterPackage default/one Normal Installed: it is 1 (<nil>)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				server := &eventServer{errs: tc.errs}
				r := newRecorder(scheme, server, logr.Discard())
				ended := make(chan error)
				go func() { ended <- r.Start(ctx) }()
				about := tc.about
				if about == nil {
					about = &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
				}
				r.Eventf(about, nil, "Normal", "Installed", "Install", "it is %d", 1)
				time.Sleep(limits.EventAttempts * limits.EventRetry)
				got, _ := server.sent()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: %s", tc.reason, diff)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestEventsDoNotHoldUpOthers: what cannot be sent now waits aside.
func TestEventsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		server := &eventServer{}
		for range limits.EventsInFlight {
			server.errs = append(server.errs, apierrors.NewTooManyRequestsError("busy"))
		}
		r := newRecorder(scheme, server, logr.Discard())
		ended := make(chan error)
		say := func(n int) {
			r.Eventf(&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}, nil, "Normal", "Installed", "Install", "%d", n)
		}
		for n := range limits.EventsInFlight + 1 {
			say(n)
		}
		go func() { ended <- r.Start(ctx) }()
		time.Sleep(limits.EventRetry / 2)
		if got, _ := server.sent(); len(got) != limits.EventsInFlight+1 {
			t.Errorf("while some are refused, %d events were sent, want %d: %q", len(got), limits.EventsInFlight+1, got)
		}
		time.Sleep(limits.EventRetry)
		if got, errs := server.sent(); len(got) != 2*limits.EventsInFlight+1 || errs != 0 {
			t.Errorf("%d requests, want %d: %q", len(got), 2*limits.EventsInFlight+1, got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestEventsYield: events come after all else, for a while, and as long as not too
// many wait.
func TestEventsYield(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	for name, tc := range map[string]struct {
		reason string
		// busy is how long other work is under way.
		busy   time.Duration
		events int
		// after half of limits.EventPatience, and in the end
		half, all int
	}{
		"nothing else":     {"there is nothing to wait for", 0, 3, 3, 3},
		"a moment":         {"they follow", limits.EventPatience / 4, 3, 3, 3},
		"much":             {"a status says what an event says", time.Hour, 3, 0, 3},
		"much, and events": {"none is lost", time.Hour, limits.EventsQueued, limits.EventsQueued / 2, limits.EventsQueued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				server, ended, begun := &eventServer{}, make(chan error), time.Now()
				r := newRecorder(scheme, server, logr.Discard())
				r.underway = func() int {
					if time.Since(begun) < tc.busy {
						return 1
					}
					return 0
				}
				for range tc.events {
					r.Eventf(&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}, nil, "Normal", "Installed", "Install", "it is")
				}
				go func() { ended <- r.Start(ctx) }()
				time.Sleep(limits.EventPatience / 2)
				if got, _ := server.sent(); len(got) < tc.half || len(got) > tc.half+limits.EventsInFlight {
					t.Errorf("%s: %d events were sent early, want %d", tc.reason, len(got), tc.half)
				}
				time.Sleep(limits.EventPatience)
				if got, _ := server.sent(); len(got) != tc.all {
					t.Errorf("%s: %d events were sent, want %d", tc.reason, len(got), tc.all)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestEventsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	r := newRecorder(scheme, nil, logr.Discard())
	for range 2 * limits.EventsQueued {
		r.Eventf(&corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}, nil, "Normal", "Installed", "Install", "it is")
	}
	if len(r.queue) != limits.EventsQueued {
		t.Errorf("%d events wait", len(r.queue))
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}
