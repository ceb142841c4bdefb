package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
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
	queue    chan *eventsv1.Event
	// pause is between attempts to send one event.
	pause time.Duration
}

// controllerName is what events say of who reports them.
const controllerName = "lockstep"

func newRecorder(scheme *runtime.Scheme, client eventsclient.EventsGetter, log logr.Logger) *recorder {
	host, _ := os.Hostname()
	return &recorder{
		scheme: scheme, client: client, log: log, now: time.Now, instance: controllerName + "-" + host,
		queue: make(chan *eventsv1.Event, limits.EventsQueued), pause: limits.EventRetry,
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
	select {
	case r.queue <- event:
	default:
		r.log.V(1).Info("An event is dropped: too many are waiting", "regarding", event.Regarding, "reason", reason)
	}
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
				case event := <-r.queue:
					r.send(ctx, event)
				}
			}
		})
	}
	senders.Wait()
	return nil
}

// send sends an event, again where there was no answer or a busy API server.
func (r *recorder) send(ctx context.Context, event *eventsv1.Event) {
	var err error
	for attempt := range limits.EventAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(r.pause):
			}
		}
		once, cancel := context.WithTimeout(ctx, limits.WriteTimeout)
		_, err = r.client.Events(event.Namespace).Create(once, event, metav1.CreateOptions{})
		cancel()
		if err == nil || !repeatable(err) {
			break
		}
	}
	// One that exists was sent by an attempt whose answer was lost. A namespace that
	// terminates takes no events.
	if err != nil && ctx.Err() == nil && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
		r.log.Error(err, "Cannot send an event", "regarding", event.Regarding, "reason", event.Reason)
	}
}

// repeatable tells whether the same event may be accepted later.
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
