package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"lockstep.run/lockstep/internal/limits"
)

// recorder sends events, and forgets each as soon as it was sent. client-go's keeps
// every event for six to twelve minutes, to join it with the next one that says the
// same of the same state of an object; ours tell of transitions, which are never
// the same, and those of a thousand packages took as much memory as what is kept of
// their history.
type recorder struct {
	scheme *runtime.Scheme
	client eventsclient.EventsGetter
	log    logr.Logger
	now    func() time.Time
	// instance names this process.
	instance string
	queue    chan attempt
	// waiting is how many events are to be sent again later.
	waiting atomic.Int64
	// unsent is how many are in the queue, or with a sender that lets others go first.
	unsent atomic.Int64
	// pause is between attempts to send one event.
	pause time.Duration
	// underway is how much is being done that comes before events.
	underway func() int
}

// attempt is an event that was sent so often without success.
type attempt struct {
	*eventsv1.Event
	failed int
}

// controllerName is what events say of who reports them.
const controllerName = "lockstep"

func newRecorder(scheme *runtime.Scheme, client eventsclient.EventsGetter, log logr.Logger) *recorder {
	host, _ := os.Hostname()
	return &recorder{
		scheme: scheme, client: client, log: log, now: time.Now, instance: controllerName + "-" + host,
		queue: make(chan attempt, limits.EventsQueued), pause: limits.EventRetry,
		underway: func() int { return 0 },
	}
}

// Eventf queues an event. Where more are waiting than limits.EventsQueued it is
// dropped: a status says everything that an event says.
func (r *recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, eventtype, reason, action, note, args...)
}

// AnnotatedEventf queues an event with annotations.
func (r *recorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any,
) {
	event, err := r.event(regarding, related)
	if err != nil {
		r.log.Error(err, "Cannot say what an event is about", "reason", reason)
		return
	}
	event.Annotations = annotations
	event.Type, event.Reason, event.Action, event.Note = eventtype, reason, action, fmt.Sprintf(note, args...)
	r.enqueue(attempt{Event: event})
}

func (r *recorder) enqueue(a attempt) {
	r.unsent.Add(1)
	select {
	case r.queue <- a:
	default:
		r.unsent.Add(-1)
		r.drop(a)
	}
}

func (r *recorder) drop(a attempt) {
	r.log.V(1).Info("An event is dropped: too many are waiting", "regarding", a.Regarding, "reason", a.Reason)
}

func (r *recorder) event(regarding, related runtime.Object) (*eventsv1.Event, error) {
	ref, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		return nil, err
	}
	now := r.now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: fmt.Sprintf("%s.%x", ref.Name, now.UnixNano())},
		EventTime:  metav1.NewMicroTime(now), ReportingController: controllerName, ReportingInstance: r.instance, Regarding: *ref,
	}
	if event.Namespace == "" {
		event.Namespace = corev1.NamespaceDefault
	}
	if related != nil {
		if event.Related, err = reference.GetReference(r.scheme, related); err != nil {
			return nil, err
		}
	}
	return event, nil
}

// Start sends events until the context ends.
func (r *recorder) Start(ctx context.Context) error {
	var senders sync.WaitGroup
	for range limits.EventsInFlight {
		senders.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case a := <-r.queue:
					r.yield(ctx, a)
					r.unsent.Add(-1)
					r.send(ctx, a)
				}
			}
		})
	}
	senders.Wait()
	return nil
}

// yield lets everything else go first: for limits.EventPatience at most, and while
// less than half as many events wait as may.
func (r *recorder) yield(ctx context.Context, a attempt) {
	for r.underway() > 0 && r.unsent.Load() < limits.EventsQueued/2 &&
		r.now().Sub(a.EventTime.Time) < limits.EventPatience && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(limits.EventYield):
		}
	}
}

// send sends an event. Where there is no answer or a busy API server it is sent again
// later, and does not hold up others until then.
func (r *recorder) send(ctx context.Context, a attempt) {
	once, cancel := context.WithTimeout(ctx, limits.WriteTimeout)
	defer cancel()
	_, err := r.client.Events(a.Namespace).Create(once, a.Event, metav1.CreateOptions{})
	if err == nil || ctx.Err() != nil {
		return
	}
	if a.failed++; repeatable(err) && a.failed < limits.EventAttempts {
		r.later(a)
		return
	}
	// One that exists was sent by an attempt whose answer was lost. A namespace that
	// terminates takes no events.
	if !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
		r.log.Error(err, "Cannot send an event", "regarding", a.Regarding, "reason", a.Reason)
	}
}

// later queues an event again after a pause.
func (r *recorder) later(a attempt) {
	if r.waiting.Add(1) > limits.EventsQueued {
		r.waiting.Add(-1)
		r.drop(a)
		return
	}
	time.AfterFunc(r.pause, func() {
		r.waiting.Add(-1)
		r.enqueue(a)
	})
}

// repeatable reports whether the same event may be accepted later.
func repeatable(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || status.Status().Code >= 500
}

// recording is a manager whose controllers record events by this recorder.
type recording struct {
	ctrl.Manager
	events ctrlrecorder.EventRecorder
}

// GetEventRecorder returns the recorder, whatever the name.
func (m recording) GetEventRecorder(string) ctrlrecorder.EventRecorder { return m.events }
