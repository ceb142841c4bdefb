package statuswriter

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
)

// Event is an event about an object, such as the transition of a status that was written.
type Event struct{ Kind, Reason, Action, Note string }

// Record records events about an object. A note is cut to limits.EventNote.
func Record(recorder events.EventRecorder, about runtime.Object, all ...Event) {
	for _, e := range all {
		recorder.Eventf(about, nil, e.Kind, e.Reason, e.Action, "%s", conditions.Cut(conditions.Message(e.Note), limits.EventNote))
	}
}
