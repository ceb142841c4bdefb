package objectdeployments

import (
	"context"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// An event over which a handler panics ends no process, and delays no other.
func TestEventsThatPanic(t *testing.T) {
	t.Parallel()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[objects.OwnerKey]())
	defer queue.ShutDown()
	h := enqueues(func(_ context.Context, obj client.Object) []objects.OwnerKey {
		if obj.GetName() == "bad" {
			panic("hunter2")
		}
		return []objects.OwnerKey{{Name: obj.GetName()}}
	})
	for _, name := range []string{"bad", "good"} {
		set := &corev1alpha1.ObjectSet{}
		set.Name = name
		h.Create(t.Context(), event.CreateEvent{Object: set}, queue)
	}
	if key, _ := queue.Get(); key.Name != "good" || queue.Len() > 0 {
		t.Errorf("enqueued are %v and %d more", key, queue.Len())
	}
	if !isNews(func() bool { panic("hunter2") }) {
		t.Error("an event over which a predicate panics is left out")
	}
}
