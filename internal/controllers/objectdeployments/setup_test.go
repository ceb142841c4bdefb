package objectdeployments

import (
	"context"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// phasesRead calls a function when an ObjectSetPhase is read, and has none.
type phasesRead struct {
	Phases
	read func()
}

func (p phasesRead) Read(context.Context, objects.OwnerKey) (Phase, error) {
	p.read()
	return nil, nil
}

// The owners of both controllers are underway, and each queue counts its own.
func TestUnderwayCountsPhases(t *testing.T) {
	t.Parallel()
	r := reconciliationOf(nil, nil).Reconciler
	r.restored = true
	start := func(q *queueing.Queue[objects.OwnerKey], name string) workqueue.TypedRateLimitingInterface[objects.OwnerKey] {
		settings := Settings(name, 1)
		limiter := workqueue.DefaultTypedItemBasedRateLimiter[objects.OwnerKey]()
		queue := q.Fair(settings.Share, settings.NamespaceOf)("", limiter)
		t.Cleanup(queue.ShutDown)
		require.NoError(t, q.Start(t.Context(), queue))
		return queue
	}
	start(&r.Deployments, "deployments")
	ofPhases := start(&r.Queues.Phases, "phases")
	phase := objects.OwnerKey{Kind: "ObjectSetPhase", Namespace: "shop", Name: "a"}
	r.Deployments.Enqueue(objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "a"})
	r.Queues.Phases.Enqueue(phase)
	r.Queues.Phases.Enqueue(objects.OwnerKey{Kind: "ObjectSetPhase", Namespace: "other", Name: "a"})
	check := func(when string) {
		t.Helper()
		if all, own := r.Underway("shop"); all != 3 || own != 2 {
			t.Errorf("%s: %d are underway, %d of the namespace", when, all, own)
		}
	}
	check("all wait")
	read := false
	r.Phases = phasesRead{read: func() {
		read = true
		check("one is reconciled")
		if got, _ := r.Queues.Phases.Depth(""); got != 2 {
			t.Errorf("the queue of phases counts %d", got)
		}
	}}
	if key, _ := ofPhases.Get(); key != phase {
		t.Fatalf("the first is %s", key)
	}
	if _, err := r.Reconcile(t.Context(), phase); err != nil || !read {
		t.Errorf("read: %t, %v", read, err)
	}
}

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
