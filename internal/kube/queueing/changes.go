package queueing

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Changes calls handle, as Repeat does, with the states before and after a change; nil for one that
// does not exist.
func Changes(handle func(ctx context.Context, before, after client.Object) error) handler.EventHandler {
	changed := func(ctx context.Context, before, after client.Object) {
		Repeat(ctx, "handling an event", func(ctx context.Context) error { return handle(ctx, before, after) })
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) { changed(ctx, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ queue) { changed(ctx, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ queue) { changed(ctx, e.Object, nil) },
	}
}

// eventRetry is the time until an event is handled again.
const eventRetry = 5 * time.Second

// Repeat calls enqueue, which enqueues the requests that an event is about, and calls it again
// later if it fails: a list that could not be read is not an empty one, and no other event follows.
// A panic is logged, and not repeated: client-go would end the process.
func Repeat(ctx context.Context, doing string, enqueue func(context.Context) error) {
	err := panics.Guard(ctx, doing, func() error { return enqueue(ctx) })
	if err == nil || ctx.Err() != nil || errors.As(err, new(*panics.Error)) {
		return
	}
	log.FromContext(ctx).Error(err, "it is repeated", "doing", doing)
	panics.After(eventRetry, doing, func() { Repeat(ctx, doing, enqueue) })
}
